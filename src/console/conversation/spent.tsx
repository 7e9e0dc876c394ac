import { count, duration, usd } from '../parts/format.ts'

const numberOf = (metadata: unknown, name: string): number | undefined => {
  const value: unknown = typeof metadata === 'object' && metadata !== null ? Reflect.get(metadata, name) : undefined
  return typeof value === 'number' ? value : undefined
}

/** What a reply has used, and how it ended when it was not completed. */
export function Spent({ metadata }: { metadata: unknown }) {
  const [cost, tokens, ms] = ['totalCostUsd', 'totalTokens', 'durationMs'].map(name => numberOf(metadata, name))
  const status: unknown =
    typeof metadata === 'object' && metadata !== null ? Reflect.get(metadata, 'status') : undefined
  const facts = [
    cost !== undefined && cost > 0 && usd(cost),
    tokens !== undefined && tokens > 0 && `${count(tokens)} tokens`,
    ms !== undefined && duration(ms),
    typeof status === 'string' && status,
  ].filter(fact => typeof fact === 'string')
  return <span className="spent">{facts.join(' · ')}</span>
}
