import { ApiError } from '../../../src/errors.ts'
import type { AcpOptions, CheckContext, EngineContext, ModelAccess } from '../../../src/plugin-api/index.ts'
import { assertProgram } from '../assert-program.ts'
import type { Launch, PrepareLaunch } from '../conversation.ts'
import { openProgram } from '../program.ts'
import { openConversation } from './conversation.ts'
import { type Preset, presets } from './presets.ts'

/** Throws an ApiError when the agent names no program, or one that the sandbox does not have. */
export async function checkAcp(context: CheckContext): Promise<void> {
  const { acp = {} } = context.options
  const preset = resolvePreset(acp)
  const { command = preset?.command ?? '' } = acp
  await assertProgram(context, command, acp.command === undefined ? preset?.install : undefined)
}

/** Prepares the Agent Client Protocol program that the agent's options name. */
export const prepareAcpLaunch: PrepareLaunch = (turn, context): Launch => {
  const { environment, cwd, options, permissions, clientTools, signal } = context
  const { acp = {} } = options
  const preset = resolvePreset(acp)
  const { command = preset?.command ?? '', args = preset?.args ?? [] } = acp
  const access = resolveAccess(context, preset)
  const asks = permissions.byOptionsAlone !== true
  const env = {
    ...context.env,
    ...(access && generalVariables(access)),
    ...(preset && access && preset.variables(access, asks)),
    ...acp.env,
  }
  const { systemPrompt } = turn
  const mode = asks ? preset?.askingMode : preset?.mode
  const session = {
    cwd,
    options,
    asks,
    clientTools,
    ...(systemPrompt !== undefined && { systemPrompt }),
    ...(preset?.authMethod !== undefined && { authMethod: preset.authMethod }),
    ...(mode !== undefined && { mode }),
    ...(preset?.namesTexts && { namesTexts: preset.namesTexts }),
  }
  return {
    name: `acp/${acp.preset ?? command}`,
    key: JSON.stringify([command, args, env, session]),
    async open(resume, emit) {
      await checkAcp(context)
      const program = { command: [command, ...args], cwd, env, ...(access && { secret: access.programToken }) }
      return await openProgram(environment, program, signal, started =>
        openConversation(started, environment, { ...session, ...(resume !== undefined && { resume }) }, emit),
      )
    },
  }
}

function resolvePreset({ preset: name, command }: AcpOptions): Preset | undefined {
  const known = [...presets.keys()].join(', ')
  if (name === undefined) {
    if (command !== undefined) return undefined
    throw new ApiError('invalid_request', `The agent's options.acp must name a preset (${known}) or a command.`)
  }
  const preset = presets.get(name)
  if (!preset)
    throw new ApiError('invalid_request', `options.acp.preset: ${name} is unknown; the presets are ${known}.`)
  return preset
}

/** Without a preset, the program may need no model of the server. */
function resolveAccess(context: EngineContext, preset: Preset | undefined): ModelAccess | undefined {
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
  throw new ApiError('invalid_request', `${command} needs ${wanted}; ${access.provider}/${access.id} is not one.`)
}

/** Variables for a program without a preset, whose command can refer to them. */
const generalVariables = ({ id, wire, insideBaseUrl, programToken }: ModelAccess): Record<string, string> => ({
  THREADBOX_MODEL: id,
  THREADBOX_MODEL_WIRE: wire,
  THREADBOX_MODEL_URL: insideBaseUrl,
  THREADBOX_MODEL_TOKEN: programToken,
})
