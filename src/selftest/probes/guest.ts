import type { Probe } from '../probe.ts'
import { insideProbe, NOT_INSIDE, runInside, variablesOf } from '../run-inside.ts'
import type { Subject } from '../subject.ts'
import { findReadableOwnFiles } from './guest-own-files.ts'
import { excuseOwnKernel } from './own-kernel.ts'
import { asStopped, runsAgain } from './runs-again.ts'

const CONTROL = 'A program inside could take over what starts and ends all else in its sandbox.'
const HIDE = 'A process could go on after its command was killed or its turn was stopped.'

const guestProbe = (name: string, tried: string, meaning: string): Probe =>
  insideProbe({ id: `guest/${name}`, tried, meaning })

/** The probe starts and kills a process this often while its mark is raced. */
const RACES = 40
const LOOK_EVERY_MS = 50

export const guest: readonly Probe[] = [
  guestProbe('trace', "attaches to threadbox's program inside as a debugger does", CONTROL),
  guestProbe('memory', "reads and writes the memory of threadbox's program", CONTROL),
  guestProbe(
    'files-in-proc',
    "reads what /proc has of threadbox's program",
    'A program inside could learn what the server tells it, as its token.',
  ),
  insideProbe({
    id: 'guest/settings-in-proc',
    tried: "writes what /proc has of threadbox's program",
    meaning: 'A program inside could have the kernel kill it first when memory is short.',
    excuse: ({ isolation }) =>
      isolation === 'container'
        ? 'Root inside has the user id of process 1 there: it can have its own sandbox ended first, which starts anew with its next use.'
        : excuseOwnKernel({ isolation }),
  }),
  guestProbe(
    'descriptors',
    "takes open files from threadbox's program",
    'A program inside could speak with the server in its place.',
  ),
  guestProbe(
    'inherited',
    'finds files and connections that were left open',
    "A program inside could use connections of the server's, or files outside of its sandbox.",
  ),
  guestProbe('executable', "changes the files of threadbox's program", 'Other sandboxes could run what it put there.'),
  guestProbe('socket', "speaks with threadbox's program on its socket", CONTROL),
  guestProbe(
    'limits',
    "lowers the limits of threadbox's program",
    'A program inside could keep the server from starting or ending anything there.',
  ),
  guestProbe('mark', 'changes the mark by which its tree of processes is found', HIDE),
  insideProbe({
    id: 'guest/mark-of-guest',
    tried: "changes the mark of threadbox's program, which is passed on to what that starts",
    meaning: HIDE,
    excuse: ({ backendName, isRoot }) =>
      backendName === 'nsjail' && !isRoot
        ? 'It can be changed where the server is not root. The sandbox then ends and starts anew: see guest/race.'
        : undefined,
  }),
  {
    id: 'guest/kill',
    tried: "kills and stops threadbox's program",
    meaning: 'What runs inside could no longer be stopped.',
    excuse,
    run: findDeadGuest,
  },
  {
    id: 'guest/race',
    tried: 'changes the mark of what is started, in a race',
    meaning: HIDE,
    isAlone: true,
    withinMs: 100_000,
    excuse,
    run: findSurvivorsOfRaces,
  },
  {
    id: 'guest/kill-tree',
    tried: 'outlives the kill of its command, in a session of its own and deaf to signals',
    meaning: HIDE,
    excuse,
    run: findSurvivors,
  },
  {
    id: 'guest/own-files',
    tried: "has threadbox's program read and write its own files in /proc",
    meaning: 'Who uses the file operations could learn what the server tells it, as its token.',
    excuse,
    run: findReadableOwnFiles,
  },
]

function excuse({ environment }: Subject): string | undefined {
  return environment.executable ? undefined : NOT_INSIDE
}

/** Where the kernel does not protect process 1 from these signals, the sandbox must start again. */
async function findDeadGuest(subject: Subject): Promise<readonly string[]> {
  const environment = await subject.create()
  await runInside(subject, 'guest/kill', { environment }).catch(asStopped)
  const isAlive = await runsAgain(environment, subject.signal)
  await subject.remove(environment)
  return isAlive ? [] : ['the sandbox does not run commands any more']
}

/** Reports what still runs after a command was killed that had started processes in every way that hides from a kill. */
async function findSurvivors(subject: Subject): Promise<readonly string[]> {
  const { environment, signal } = subject
  const word = newWord()
  const deaf = `trap '' HUP INT TERM QUIT; echo up; sleep ${word}; sleep ${word}`
  const command = [
    `(${deaf}) & ((${deaf}) &)`,
    `(setsid sh -c "${deaf}" || sh -c "${deaf}") & (env -i setsid sh -c "${deaf}" || sh -c "${deaf}") &`,
    `sleep ${word}`,
  ].join('\n')
  const kill = new AbortController()
  const child = await environment.spawn({ command, signal: AbortSignal.any([signal, kill.signal]) })
  const output = child.stdout.getReader()
  for (let said = ''; said.split('up').length <= 4; ) {
    const { value, done } = await output.read()
    if (done) throw new Error('the commands could not be started')
    said += Buffer.from(value).toString()
  }
  kill.abort()
  await child.exited.catch(() => {})
  return (await idsWith(subject, word)).map(pid => `process ${pid} was not killed`)
}

/**
 * Kills processes while root inside changes the guest's mark. The guest notices such a race and starts again, so that a use may fail.
 * Processes with a wrong mark must end with the sandbox at the latest.
 */
async function findSurvivorsOfRaces(subject: Subject): Promise<readonly string[]> {
  const { signal } = subject
  const environment = await subject.create()
  const word = newWord()
  let isRacing = false
  for (let round = 0; round < RACES; round++) {
    signal.throwIfAborted()
    try {
      if (!isRacing) {
        isRacing = true
        const command = [...(environment.executable ?? []), 'probe', 'guest/race']
        const racer = await environment.spawn({ command, env: variablesOf(subject), signal })
        racer.exited.catch(() => {}).finally(() => (isRacing = false))
        await racer.stdout.getReader().read()
      }
      const kill = new AbortController()
      const command = `(setsid sleep ${word} || sleep ${word}) & sleep ${word}`
      const child = await environment.spawn({ command, signal: kill.signal })
      kill.abort()
      await child.exited
    } catch {
      // The sandbox starts again with its next use.
    }
  }
  let found: readonly string[] = []
  for (let looks = 0; looks < 100; looks++) {
    found = await idsWith({ ...subject, environment }, word).catch(() => ['?'])
    if (found.length === 0) break
    await Bun.sleep(LOOK_EVERY_MS)
  }
  await subject.remove(environment)
  return found.map(pid => `process ${pid} was not killed`)
}

/** Returns a number of seconds that no other process sleeps for. */
const newWord = (): string => String(10_000_000 + Math.floor(Math.random() * 89_999_999))

const idsWith = (subject: Subject, word: string): Promise<readonly string[]> =>
  runInside(subject, 'guest/find', { environment: subject.environment, words: [word] })
