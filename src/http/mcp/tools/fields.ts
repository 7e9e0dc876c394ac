import { Type } from '@sinclair/typebox'
import { bounds } from '../../../bounds.ts'

/** Fields that several tools share. An id becomes a part of a path, so its characters are restricted. */

export const SandboxId = Type.String({
  pattern: '^[A-Za-z0-9_-]+$',
  maxLength: bounds.id,
  description: 'Id of the sandbox.',
  errorMessage: 'must be the id of a sandbox',
})

export const AgentSlug = Type.String({
  pattern: '^[A-Za-z0-9][A-Za-z0-9_-]*$',
  maxLength: bounds.slug,
  description: 'Slug of the agent.',
  errorMessage: 'must be the slug of an agent',
})

export const Pid = Type.Integer({ minimum: 1, maximum: 9_999_999_999, description: 'Pid that start_process gave.' })

export const MaxCharacters = Type.Integer({
  minimum: 100,
  maximum: 200_000,
  description: 'How much of it to give; default 30000.',
})
export const DEFAULT_CHARACTERS = 30_000
