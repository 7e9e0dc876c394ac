import { join } from 'node:path'
import { runCommand } from '../environment/run-command.ts'
import type { Environment } from '../plugin-api/index.ts'
import { isAsMade, makeAgain, namesOfHostFiles } from './files-of-host.ts'
import type { Probe } from './probe.ts'
import type { Subject } from './subject.ts'

/** A program prints this as its last line when it has tried everything: see `inside/main.ts`. */
const END = 'end'

export interface InsideOptions {
  /** The sandbox that the program runs in. The default is the one that attacks. */
  environment?: Environment
  words?: readonly string[]
  cwd?: string
  /** The exit codes of a program that was killed for its attempt. Such a kill counts as a refusal. */
  deaths?: readonly number[]
}

/**
 * Runs a program of `inside/` in a sandbox, and resolves to the lines that it reports. Rejects when the program did not end as it should.
 * It is killed when `subject.signal` aborts.
 */
export async function runInside(
  subject: Pick<Subject, 'environment' | 'hostDirectory' | 'secret' | 'peer' | 'signal'>,
  id: string,
  { environment = subject.environment, words = [], cwd, deaths = [] }: InsideOptions = {},
): Promise<readonly string[]> {
  const { signal } = subject
  if (!environment.executable) throw new Error(NOT_INSIDE)
  const { stdout, stderr, exitCode } = await runCommand(environment, {
    command: [...environment.executable, 'probe', id, ...words],
    env: variablesOf(subject),
    signal,
    ...(cwd !== undefined && { cwd }),
  })
  const lines = stdout.split('\n').filter(line => line !== '')
  if (lines.at(-1) === END) return lines.slice(0, -1)
  if (deaths.includes(exitCode)) return lines
  // The findings from before the program broke off are kept.
  const why = `it did not come to its end (exit code ${exitCode}): ${stderr.trim().split('\n').at(-1) ?? ''}`
  throw new Error([...lines, why].join('; '))
}

export const NOT_INSIDE = 'This backend has no program of threadbox inside.'

/** The variables of a program inside. The secret is reversed, so that nothing in the sandbox contains it as it is. */
export const variablesOf = ({
  hostDirectory,
  secret,
  peer,
}: Pick<Subject, 'hostDirectory' | 'secret' | 'peer'>): Record<string, string> => ({
  SELFTEST_HOST_DIRECTORY: hostDirectory,
  SELFTEST_SECRET: [...secret].reverse().join(''),
  SELFTEST_PEER: peer,
})

/**
 * Makes a probe that runs the program of the same id in `inside/`. Afterwards the host's files must be unchanged, and the sandbox must
 * run on.
 */
export const insideProbe = (probe: Omit<Probe, 'run'>): Probe => ({
  ...probe,
  excuse: subject => (subject.environment.executable ? probe.excuse?.(subject) : NOT_INSIDE),
  async run(subject) {
    const found = await runInside(subject, probe.id)
    return [...found, ...(await findDamage(subject))]
  },
})

/** Reports changes of the host's files, and a sandbox that does not run on. */
export async function findDamage({
  environment,
  hostDirectory,
  secret,
  signal,
}: Pick<Subject, 'environment' | 'hostDirectory' | 'secret' | 'signal'>): Promise<readonly string[]> {
  const found: string[] = []
  for (const name of namesOfHostFiles) {
    if (await isAsMade(hostDirectory, name, secret)) continue
    found.push(`${join(hostDirectory, name)} of the host was changed`)
    // The content is restored, so that the next probe does not report it again.
    await makeAgain(hostDirectory, name, secret)
  }
  const { stdout } = await runCommand(environment, { command: 'echo alive', signal })
  if (stdout !== 'alive\n') found.push('the sandbox does not run commands any more')
  return found
}
