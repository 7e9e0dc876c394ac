import { serveTools } from './main.ts'

/** The same as a script of its own, for a sandbox that has Node or Bun and not this executable. */
export { agent, Sandbox, tool, z } from './sdk.ts'

void serveTools(process.argv.slice(2)).then(code => process.exit(code))
