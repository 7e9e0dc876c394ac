import { awkward } from './awkward.ts'
import { parsers } from './parsers.ts'

/** Reads all that is awkward with the parser that is named, and says how long the slowest took, in milliseconds. */
const [, , name = ''] = process.argv
const parser = parsers[name]
if (!parser) throw new Error(`no such parser: ${name}`)
let slowest = 0
for (const text of awkward) {
  const startedAt = performance.now()
  try {
    await parser(text)
  } catch {
    // It is refused.
  }
  slowest = Math.max(slowest, performance.now() - startedAt)
}
console.log(Math.round(slowest))
process.exit()
