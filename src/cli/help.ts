import { settings } from '../settings.ts'

const commands = [
  ['serve', 'run the server'],
  ['doctor', 'try what the server needs, and say what is missing'],
  ['keys create | list | revoke ID', 'API keys'],
  ['agents apply FILE or DIR | list | show SLUG | remove SLUG', 'agents'],
  ['agents deploy DIR or FILE', 'bundle agents and send them to a running server'],
  ['base add NAME FILE | list | remove NAME', 'root file systems for sandboxes on nsjail'],
  ['chat [AGENT] [MESSAGE]', 'talk to an agent of a running server'],
  ['run [--agent A] [--file LOCAL=INSIDE]… [--clone URL] [--out INSIDE=LOCAL]… PROMPT', 'an agent in a sandbox, once'],
  ['exec [likewise] -- COMMAND…', 'a command in a sandbox, once'],
  ['service install | status | remove', 'the server as a service of systemd'],
  ['plugin test FILE | types', 'the contract suites on a plugin, and what its editor wants'],
  ['shell SANDBOX [-- COMMAND ...]', 'open a terminal in a sandbox of a running server'],
  ['version', 'print the version'],
  ['licenses', 'print the notices of what this executable embeds'],
  ['help', 'print this'],
  ['guest, tools', 'what runs inside a sandbox; the server starts it'],
  ['guard', 'what cleans up after a killed run or exec; they start it'],
] as const

/** Every command and every setting. */
export function help(): void {
  const flags = settings.map(({ name, value, help }) => [`--${name} ${value}`, help] as const)
  console.log(`threadbox: a runtime for AI agents

usage: threadbox COMMAND [FLAGS]

${table(commands)}

flags, each also THREADBOX_NAME in the environment and "name" in the --config file:

${table(flags)}`)
}

function table(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join('\n')
}
