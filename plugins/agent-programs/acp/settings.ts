import { messageOf } from '../../../src/errors.ts'
import type { EngineEvent } from '../../../src/plugin-api/index.ts'
import { type JsonObject, objectOf, objectsOf } from '../../../src/read/json.ts'
import type { Peer } from './peer.ts'
import type { AcpSession } from './session.ts'

/**
 * Sets the session's mode and options, each by its id or name. A setting that the agent names and the program refuses becomes
 * a notice. The default mode is left out silently when the program does not have it.
 */
export async function chooseSettings(
  peer: Peer,
  sessionId: string,
  state: JsonObject,
  { options, mode: defaultMode }: AcpSession,
  emit: (event: EngineEvent) => void,
): Promise<void> {
  const { acp = {}, permissionMode } = options
  const refused = (what: string, why: string) =>
    emit({ type: 'notice', level: 'warn', code: 'setting_refused', text: `${what} could not be set: ${why}` })

  const modes = objectsOf(objectOf(state.modes)?.availableModes)
  const modeOption = objectsOf(state.configOptions).find(({ category }) => category === 'mode')
  const wanted = acp.mode ?? (permissionMode === 'plan' ? 'plan' : defaultMode)
  if (wanted !== undefined) {
    const modeId = find(modes, wanted)?.id
    try {
      if (typeof modeId === 'string') await peer.call('session/set_mode', { sessionId, modeId })
      else if (modeOption && findChoice(modeOption, wanted) !== undefined) await setOption(modeOption, wanted)
      else if (acp.mode !== undefined) refused(`The mode ${wanted}`, listed('modes', modes))
    } catch (error) {
      refused(`The mode ${wanted}`, messageOf(error))
    }
  }
  for (const [name, value] of Object.entries(acp.config ?? {})) {
    const known = objectsOf(state.configOptions)
    const option = find(known, name)
    try {
      if (option) await setOption(option, value)
      else refused(`The option ${name}`, listed('options', known))
    } catch (error) {
      refused(`The option ${name}`, messageOf(error))
    }
  }

  async function setOption(option: JsonObject, value: string | boolean): Promise<void> {
    const known = findChoice(option, value)
    if (known === undefined) throw new Error(`it has no value ${String(value)}.`)
    await peer.call('session/set_config_option', { sessionId, configId: option.id, value: known })
  }
}

/** The values of an option may be in groups. */
function findChoice(option: JsonObject, wanted: string | boolean): string | boolean | undefined {
  if (typeof wanted === 'boolean') return wanted
  const values = objectsOf(option.options).flatMap(each =>
    Array.isArray(each.options) ? objectsOf(each.options) : [each],
  )
  const found = values.find(({ value, name }) => isNamed(value, wanted) || isNamed(name, wanted))
  return typeof found?.value === 'string' ? found.value : undefined
}

/** As the reason of a refusal. */
const listed = (kind: string, items: readonly JsonObject[]): string =>
  items.length > 0
    ? `the program has the ${kind} ${items.map(({ id }) => id).join(', ')}.`
    : `the program has no ${kind}.`

const find = (items: readonly JsonObject[], wanted: string) =>
  items.find(({ id }) => id === wanted) ?? items.find(({ id, name }) => isNamed(id, wanted) || isNamed(name, wanted))

const isNamed = (name: unknown, wanted: string): boolean =>
  typeof name === 'string' && name.toLowerCase() === wanted.toLowerCase()
