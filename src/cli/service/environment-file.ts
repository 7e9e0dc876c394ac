const note = `# The settings of the service threadbox, as variables. After a change: systemctl restart threadbox
# Keys of model providers belong here too, such as ANTHROPIC_API_KEY="…"
`

/** Sets variables in the text of a systemd environment file. Keeps all other lines. */
export function withVariables(before: string | undefined, variables: Readonly<Record<string, string>>): string {
  const lines = (before ?? note).trimEnd().split('\n')
  for (const [name, value] of Object.entries(variables)) {
    const line = `${name}=${quote(value)}`
    const known = lines.findIndex(each => each.startsWith(`${name}=`))
    if (known < 0) lines.push(line)
    else lines[known] = line
  }
  return `${lines.join('\n')}\n`
}

export const hasVariable = (text: string | undefined, name: string): boolean =>
  text?.split('\n').some(line => line.startsWith(`${name}=`)) ?? false

/** Parses such a file, as far as `withVariables` has written it or its lines are plain. */
export function parseVariables(text: string): Record<string, string> {
  const rows = text.matchAll(/^([A-Za-z_][A-Za-z0-9_]*)=(?:"((?:[^"\\]|\\.)*)"|([^"'\n]*?))[ \t]*$/gm)
  return Object.fromEntries(
    [...rows].map(([, name = '', quoted, plain = '']) => [name, quoted?.replace(/\\(.)/g, '$1') ?? plain]),
  )
}

/** Quotes a value as in a shell's double quotes, which systemd reads. */
function quote(value: string): string {
  if (/[\n\0]/.test(value)) throw new Error('a setting of a service must be one line')
  return `"${value.replace(/["\\$`]/g, '\\$&')}"`
}
