import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import {
  deleteAgent,
  getVersionedAgent,
  listVariables,
  listVersionedAgents,
  rollBackAgent,
  setVariable,
  type VersionedAgent,
} from '../../core/agents/agents.ts'
import { editAgent, showAgent } from '../../core/agents/definition.ts'
import type { Runtime } from '../../core/runtime.ts'
import type { DeploymentSummary } from '../../model/deployment.ts'
import { json, optionalJson } from '../body.ts'
import { getCaller } from '../caller.ts'
import { NO_NUL, VARIABLE_NAME } from '../schema.ts'

const SlugParams = Type.Object({ slug: Type.String() })
const Rollback = Type.Object({ version: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })) })
const VersionQuery = Type.Object({
  version: Type.Optional(
    Type.String({
      pattern: '^[1-9][0-9]{0,14}$',
      errorMessage: 'must be the number of a version',
      description: 'What the agent was then, in the place of what it is now.',
    }),
  ),
})
const Change = Type.Object({
  revision: Type.String({
    maxLength: bounds.word,
    description: 'That of the agent as it was read. With any other the answer is 409.',
  }),
  definition: Type.Object(
    {},
    {
      additionalProperties: true,
      description: 'The whole agent, as an agent file has it; null in the place of a secret keeps the secret.',
    },
  ),
})
const VariableName = Type.String({
  pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
  errorMessage: VARIABLE_NAME,
  maxLength: bounds.variableName,
})
const SetVariable = Type.Object({ key: VariableName, value: Type.String({ ...NO_NUL, maxLength: 65_536 }) })
const RemoveVariable = Type.Object({ key: VariableName })

export const agentRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/agents' })
    .get('/', ({ request }) => ({ agents: listVersionedAgents(runtime, getCaller(request)).map(summary) }))
    .get('/:slug', ({ request, params: { slug } }) => detail(getVersionedAgent(runtime, getCaller(request), slug)), {
      params: SlugParams,
    })
    .delete(
      '/:slug',
      async ({ request, params: { slug } }) => {
        await deleteAgent(runtime, getCaller(request), slug)
        return { success: true, slug, message: `${slug} is deleted. Its sandboxes stay.` }
      },
      { params: SlugParams },
    )
    .get(
      '/:slug/definition',
      ({ request, params: { slug }, query: { version } }) =>
        showAgent(runtime, getCaller(request), slug, version === undefined ? undefined : Number(version)),
      { params: SlugParams, query: VersionQuery },
    )
    .put(
      '/:slug/definition',
      ({ request, params: { slug }, body }) => editAgent(runtime, getCaller(request), slug, body),
      { params: SlugParams, ...json(Change) },
    )
    .get(
      '/:slug/deployments',
      ({ request, params: { slug } }) => {
        const { agent, deployments } = getVersionedAgent(runtime, getCaller(request), slug)
        return { deployments: deployments.map(each => version(each, agent.deploymentId)) }
      },
      { params: SlugParams },
    )
    .post(
      '/:slug/rollback',
      ({ request, params: { slug }, body }) => {
        const { version, id } = rollBackAgent(runtime, getCaller(request), slug, body.version)
        return { slug, version, deploymentId: id, message: `${slug} is back at version ${version}.` }
      },
      { params: SlugParams, ...optionalJson(Rollback) },
    )
    .get(
      '/:slug/env',
      ({ request, params: { slug } }) => ({ keys: listVariables(runtime, getCaller(request), slug) }),
      {
        params: SlugParams,
      },
    )
    .put(
      '/:slug/env',
      ({ request, params: { slug }, body: { key, value } }) => ({
        keys: setVariable(runtime, getCaller(request), slug, { key, value }),
      }),
      { params: SlugParams, ...json(SetVariable) },
    )
    .delete(
      '/:slug/env',
      ({ request, params: { slug }, body: { key } }) => ({
        keys: setVariable(runtime, getCaller(request), slug, { key }),
      }),
      { params: SlugParams, ...json(RemoveVariable) },
    )

const summary = ({ agent, active }: VersionedAgent) => ({
  id: agent.id,
  name: agent.name,
  slug: agent.slug,
  runtime: agent.engine,
  deployedAt: active?.createdAt ?? null,
  createdAt: agent.createdAt,
  updatedAt: agent.updatedAt,
  activeVersion: active?.version ?? null,
  activeDeploymentStatus: active ? 'active' : null,
})

const detail = (versioned: VersionedAgent) => ({
  ...summary(versioned),
  model: versioned.agent.model ?? null,
  tools: versioned.active?.tools ?? [],
  totalDeployments: versioned.deployments.length,
})

const version = (
  { id, version, madeBy, createdAt, model, tools }: DeploymentSummary,
  activeId: string | undefined,
) => ({
  id,
  version,
  madeBy,
  status: id === activeId ? 'active' : 'inactive',
  isActive: id === activeId,
  deployedAt: createdAt,
  completedAt: createdAt,
  error: null,
  metadata: { model: model ?? null, tools },
})
