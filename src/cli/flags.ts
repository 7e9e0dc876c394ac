/** A mistake on the command line: told without a stack, exit code 2. */
export class UsageError extends Error {
  readonly exitCode = 2
}

/** Takes `--name value` and `--name=value` of these names out of the arguments; the rest stays as it is. */
export function takeFlags<Name extends string>(
  args: readonly string[],
  names: readonly Name[],
): { flags: Partial<Record<Name, string>>; rest: string[] } {
  const flags: Partial<Record<Name, string>> = {}
  const rest: string[] = []
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? ''
    const [flag = '', inline] = arg.startsWith('--') ? splitFlag(arg.slice(2)) : []
    const name = names.find(each => each === flag)
    if (!name) {
      rest.push(arg)
      continue
    }
    const value = inline ?? args[++index]
    if (value === undefined) throw new UsageError(`--${name} wants a value`)
    flags[name] = value
  }
  return { flags, rest }
}

/** The name, and the value of `name=value`. */
export function splitFlag(flag: string): [string, string | undefined] {
  const equals = flag.indexOf('=')
  return equals < 0 ? [flag, undefined] : [flag.slice(0, equals), flag.slice(equals + 1)]
}

/** The words before the first flag, and the flags. */
export function splitWords(args: readonly string[]): { words: string[]; flags: string[] } {
  const first = args.findIndex(arg => arg.startsWith('--'))
  return first < 0 ? { words: [...args], flags: [] } : { words: args.slice(0, first), flags: args.slice(first) }
}
