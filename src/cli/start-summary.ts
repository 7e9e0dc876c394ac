import { version } from '../../package.json'
import type { Runtime } from '../core/runtime.ts'
import { listAgents } from '../db/agents.ts'

/** How many agents are named. */
const SHOWN = 20

/** Describes the running server in a few lines, for the person who started it. */
export function startSummary({ config, db, backends, gateway }: Runtime, teamId: string): string[] {
  const isolation = backends.get(config.backend)?.isolation ?? 'unknown'
  const agents = listAgents(db, teamId).map(({ slug }) => slug)
  const model = gateway.defaultModel ?? "none yet: set a provider's key, such as ANTHROPIC_API_KEY, or --model"
  const rows = [
    ['version', version],
    ['data', config.dataDirectory],
    ['sandboxes', `${config.backend} (${isolation})`],
    ['model', model],
    [
      'agents',
      [...agents.slice(0, SHOWN), ...(agents.length > SHOWN ? [`${agents.length - SHOWN} more`] : [])].join(', '),
    ],
  ]
  return rows.map(([name = '', value = '']) => `  ${name.padEnd(10)} ${value}`)
}

/** Says how to get a key when the first one was made at an earlier start. */
export const keyHint = (dataDirectory: string): string =>
  `  ${'API keys'.padEnd(10)} threadbox keys create --data-dir ${quote(dataDirectory)}`

const quote = (word: string): string => (/^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)
