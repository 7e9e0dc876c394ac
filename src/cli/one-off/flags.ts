import { splitFlag, UsageError } from '../flags.ts'

/** One thing to be brought from a place to another. */
export interface Copy {
  from: string
  to: string
}

/** What `run` and `exec` are to do, beside the settings. */
export interface OneOff {
  /** A slug, or a file. */
  agent?: string
  /** Files and directories of this machine, to the sandbox. */
  files: Copy[]
  envs: Record<string, string>
  clone?: string
  /** Of the sandbox, to this machine. */
  outs: Copy[]
  /** A line of JSON for each thing that happens, in place of text. */
  json: boolean
  /** What a server would log goes to stderr. */
  verbose: boolean
  /** What is left: settings, each with its value. */
  settings: string[]
  /** What is no flag, and all after `--`. */
  words: string[]
}

/** Throws a UsageError. */
export function readOneOff(args: readonly string[], environment: NodeJS.ProcessEnv): OneOff {
  const oneOff: OneOff = { files: [], envs: {}, outs: [], json: false, verbose: false, settings: [], words: [] }
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? ''
    if (arg === '--') {
      oneOff.words.push(...args.slice(index + 1))
      break
    }
    if (!arg.startsWith('--')) {
      oneOff.words.push(arg)
      continue
    }
    const [name, inline] = splitFlag(arg.slice(2))
    if ((name === 'json' || name === 'verbose') && inline === undefined) {
      oneOff[name] = true
      continue
    }
    const value = inline ?? args[++index]
    if (value === undefined) throw new UsageError(`--${name} wants a value`)
    if (name === 'agent' || name === 'clone') oneOff[name] = value
    else if (name === 'file') oneOff.files.push(copyOf('--file', 'LOCAL=INSIDE', value))
    else if (name === 'out') oneOff.outs.push(copyOf('--out', 'INSIDE=LOCAL', value))
    else if (name === 'env') addVariable(oneOff.envs, value, environment)
    else oneOff.settings.push(`--${name}`, value)
  }
  return oneOff
}

function copyOf(flag: string, form: string, value: string): Copy {
  const equals = value.indexOf('=')
  const [from, to] = [value.slice(0, equals), value.slice(equals + 1)]
  if (equals < 1 || to === '') throw new UsageError(`${flag} wants ${form}`)
  return { from, to }
}

/** `NAME=VALUE`, or `NAME` alone for the value that it has here: a secret then is in no command line. */
function addVariable(envs: Record<string, string>, given: string, environment: NodeJS.ProcessEnv): void {
  const equals = given.indexOf('=')
  const name = equals < 0 ? given : given.slice(0, equals)
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw new UsageError('--env wants NAME=VALUE, or NAME')
  const value = equals < 0 ? environment[name] : given.slice(equals + 1)
  if (value === undefined) throw new UsageError(`--env ${name}: it is not set here`)
  envs[name] = value
}
