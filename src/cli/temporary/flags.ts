import { type Given, UsageError } from '../command-line.ts'

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
  /** Settings of `serve`, each with its value. */
  settings: readonly string[]
  /** What is no flag, and all after `--`. */
  words: readonly string[]
}

/** Throws a UsageError. */
export function readOneOff(given: Given, environment: NodeJS.ProcessEnv): OneOff {
  const envs: Record<string, string> = {}
  for (const variable of given.all('env')) addVariable(envs, variable, environment)
  const [agent, clone] = [given.find('agent'), given.find('clone')]
  return {
    files: given.all('file').map(value => copyOf('--file', 'LOCAL=INSIDE', value)),
    outs: given.all('out').map(value => copyOf('--out', 'INSIDE=LOCAL', value)),
    envs,
    json: given.has('json'),
    verbose: given.has('verbose'),
    settings: given.settings,
    words: given.words,
    ...(agent !== undefined && { agent }),
    ...(clone !== undefined && { clone }),
  }
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
