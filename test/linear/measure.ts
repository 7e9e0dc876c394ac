import { awkward } from './awkward.ts'
import { costly, parsers } from './parsers.ts'

/** Reads all that is awkward with each parser, and says a line for each: its name, and how long the slowest text took, in milliseconds. */
for (const [name, parser] of Object.entries(parsers)) {
  // A seventh has every kind of text too.
  const texts = costly.includes(name) ? awkward.filter((_, index) => index % 7 === 0) : awkward
  let slowest = 0
  for (const text of texts) {
    const startedAt = performance.now()
    try {
      await parser(text)
    } catch {
      // It is refused.
    }
    slowest = Math.max(slowest, performance.now() - startedAt)
  }
  console.log(JSON.stringify([name, Math.round(slowest)]))
}
process.exit()
