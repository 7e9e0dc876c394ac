import { ApiError } from '../../../src/errors.ts'
import type { AcpOptions, CheckContext, EngineContext, ModelAccess } from '../../../src/plugin-api/index.ts'
import type { Launch, Plan } from '../conversation.ts'
import { assertProgram } from '../find.ts'
import { openProgram } from '../program.ts'
import { openConversation } from './conversation.ts'
import { type Preset, presets } from './presets.ts'

/** Throws when the agent names no program, or one that the sandbox does not have. */
export async function checkAcp(context: CheckContext): Promise<void> {
  const { acp = {} } = context.options
  const preset = presetOf(acp)
  const { command = preset?.command ?? '' } = acp
  await assertProgram(context, command, acp.command === undefined ? preset?.install : undefined)
}

/** An Agent Client Protocol program, by the agent's own choice. */
export const planAcp: Plan = (turn, context): Launch => {
  const { environment, cwd, options, signal } = context
  const { acp = {} } = options
  const preset = presetOf(acp)
  const { command = preset?.command ?? '', args = preset?.args ?? [] } = acp
  const access = accessOf(context, preset)
  const env = {
    ...context.env,
    ...(access && generalVariables(access)),
    ...(preset && access && preset.variables(access)),
    ...acp.env,
  }
  const { systemPrompt } = turn
  const session = {
    cwd,
    options,
    ...(systemPrompt !== undefined && { systemPrompt }),
    ...(preset?.authMethod !== undefined && { authMethod: preset.authMethod }),
    ...(preset?.mode !== undefined && { mode: preset.mode }),
    ...(preset?.namesTexts && { namesTexts: preset.namesTexts }),
  }
  return {
    name: `acp/${acp.preset ?? command}`,
    key: JSON.stringify([command, args, env, session]),
    async open(resume, tell) {
      await checkAcp(context)
      const program = { command: [command, ...args], cwd, env, ...(access && { secret: access.programToken }) }
      return await openProgram(environment, program, signal, started =>
        openConversation(started, { ...session, ...(resume !== undefined && { resume }) }, tell),
      )
    },
  }
}

function presetOf({ preset: name, command }: AcpOptions): Preset | undefined {
  const known = [...presets.keys()].join(', ')
  if (name === undefined) {
    if (command !== undefined) return undefined
    throw new ApiError(
      'invalid_request',
      `The agent's options.acp names no program: it wants a preset (${known}) or a command.`,
    )
  }
  const preset = presets.get(name)
  if (!preset) throw new ApiError('invalid_request', `options.acp.preset: ${name} is none of ${known}.`)
  return preset
}

/** A program that is not known may need no model of the server's. */
function accessOf(context: EngineContext, preset: Preset | undefined): ModelAccess | undefined {
  if (!preset) {
    try {
      return context.openModel()
    } catch {
      return undefined
    }
  }
  const access = context.openModel()
  const { command, wires, provider = access.provider } = preset
  if (wires.includes(access.wire) && access.provider === provider) return access
  const wanted = preset.provider === undefined ? `a model whose API is ${wires.join(' or ')}` : `a model of ${provider}`
  throw new ApiError('invalid_request', `${command} needs ${wanted}; ${access.provider}/${access.id} is none.`)
}

/** For a program that is not known: its own command line can make of them what it needs. */
const generalVariables = ({ id, wire, insideBaseUrl, programToken }: ModelAccess): Record<string, string> => ({
  THREADBOX_MODEL: id,
  THREADBOX_MODEL_WIRE: wire,
  THREADBOX_MODEL_URL: insideBaseUrl,
  THREADBOX_MODEL_TOKEN: programToken,
})
