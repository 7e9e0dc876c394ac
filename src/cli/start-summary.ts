import { version } from '../../package.json'
import type { Runtime } from '../core/runtime.ts'
import { listAgents } from '../db/agents.ts'

/** Of the agents. */
const SHOWN = 20

/** What runs now, a line each, for whoever has started it. */
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

/** How to get a key to a server that has made its first one before. */
export const keyHint = (dataDirectory: string): string =>
  `  ${'API keys'.padEnd(10)} threadbox keys create --data-dir ${quote(dataDirectory)}`

const quote = (word: string): string => (/^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)
