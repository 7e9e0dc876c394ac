import { version } from '../../package.json'
import type { Runtime } from '../core/runtime.ts'
import { describeClasses } from '../core/sandboxes/choose-backend.ts'
import { listAgents } from '../db/agents.ts'

/** How many agents are named. */
const SHOWN = 20

/** Describes the running server in a few lines, for the person who started it. */
export function startSummary({ config, db, backends, gateway }: Runtime, teamId: string): string[] {
  const isolationOf = (name: string) => describeClasses(backends.get(name))
  const agents = listAgents(db, teamId).map(({ slug }) => slug)
  const model = gateway.defaultModel ?? "none yet: set a provider's key, such as ANTHROPIC_API_KEY, or --model"
  const rows = [
    ['version', version],
    ['data', config.dataDirectory],
    ['sandboxes', config.backends.map(name => `${name} (${isolationOf(name)})`).join(', ')],
    ['model', model],
    [
      'agents',
      [...agents.slice(0, SHOWN), ...(agents.length > SHOWN ? [`${agents.length - SHOWN} more`] : [])].join(', '),
    ],
  ]
  return rows.map(([name = '', value = '']) => `  ${name.padEnd(10)} ${value}`)
}

/** Says how to get a key and how to sign in to the console, when an earlier start has made the first key. */
export const keyHint = (dataDirectory: string): string =>
  [
    ['API keys', 'keys create'],
    ['console', 'sign-in'],
  ]
    .map(([name = '', command]) => `  ${name.padEnd(10)} threadbox ${command} --data-dir ${quote(dataDirectory)}`)
    .join('\n')

const quote = (word: string): string => (/^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)
