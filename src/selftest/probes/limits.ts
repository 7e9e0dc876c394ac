import type { Environment, Limits } from '../../plugin-api/index.ts'
import type { Probe } from '../probe.ts'
import { insideProbe, NOT_INSIDE, runInside } from '../run-inside.ts'
import type { Subject } from '../subject.ts'
import { excuseOwnKernel } from './own-kernel.ts'
import { asStopped, runsAgain } from './runs-again.ts'

/** The kernel ends a program that takes too much memory by SIGKILL, and one that writes too large a file by SIGXFSZ. */
const deaths = [137, 153]
const LOOK_EVERY_MS = 100
/** Seconds are enough on most machines. A busy machine, or a kernel in user space without memory, takes longer. */
const WITHIN_MS = 100_000

/** The limits that the probes try are large enough for what the server itself needs inside. */
const tried: Limits = { memoryMb: 512, processes: 64, cpus: 1, diskMb: 64 }
const MORE_MEMORY_MB = 1024
const MORE_SHARED_MEMORY_MB = 128
const MORE_DISK_MB = 192
const MORE_PROCESSES = 200
const MORE_FILES = 100_000
const MORE_TERMINALS = 300
const CPUS = 0.3
const BUSY_MS = 2000
const BUSY_PROCESSES = 2

interface LimitProbe extends Omit<Probe, 'run' | 'excuse'> {
  /** The name of the line in a sandbox's confinement that says when this is not limited. */
  line?: 'memory' | 'processes' | 'cpu' | 'disk'
  excuse?(subject: Subject): string | undefined
  words: readonly (string | number)[]
  /** Looks at the sandbox after its program has run, and returns what got through. */
  judge?(environment: Environment, found: readonly string[], signal: AbortSignal): Promise<readonly string[]>
}

/** Makes a probe whose program takes more than its own new sandbox may have. The sandbox must run on afterwards. */
const limitProbe = ({ line, words, judge, ...probe }: LimitProbe): Probe => ({
  ...probe,
  withinMs: WITHIN_MS,
  excuse(subject) {
    if (!subject.environment.executable) return NOT_INSIDE
    return (line && findUnlimited(subject.environment, line)) ?? probe.excuse?.(subject)
  },
  async run(subject) {
    const environment = await subject.create({ limits: tried })
    const inside = { environment, words: words.map(String), deaths }
    const found = await runInside(subject, probe.id, inside).catch(asStopped)
    const judged = (await judge?.(environment, found, subject.signal)) ?? found
    const isAlive = await runsAgain(environment, subject.signal)
    await subject.remove(environment)
    return isAlive ? judged : [...judged, 'the sandbox does not run commands any more']
  },
})

/** Finds the sentence in which the server says that it cannot limit this. Callers who make a sandbox get it too. */
function findUnlimited({ confinement }: Environment, name: string): string | undefined {
  const line = confinement.find(each => each.startsWith(`${name}: not limited`))
  return line && `This server does not limit it, and says so of each sandbox: ${line}.`
}

const isWatched = ({ confinement }: Environment): boolean =>
  confinement.some(line => line.startsWith('disk: ') && line.includes('by watching'))

/** Where the server only watches the disk, it stops a program that took too much a little later, and the sandbox says so. */
async function judgeDisk(
  environment: Environment,
  found: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (found.length === 0 || !isWatched(environment)) return found
  const isStopped = () => environment.confinement.some(line => line.includes('its files took'))
  while (!isStopped()) {
    if (signal.aborted) return [...found, 'it was not stopped']
    await Bun.sleep(LOOK_EVERY_MS)
  }
  return []
}

export const limits: readonly Probe[] = [
  limitProbe({
    id: 'limits/memory',
    tried: 'takes more memory than it may have',
    meaning: 'One sandbox could use up the memory of the host, and other programs would be killed.',
    line: 'memory',
    words: [MORE_MEMORY_MB],
  }),
  limitProbe({
    id: 'limits/shared-memory',
    tried: 'fills the memory that its processes share',
    meaning: 'One sandbox could use up the memory of the host.',
    words: [MORE_SHARED_MEMORY_MB],
  }),
  limitProbe({
    id: 'limits/processes',
    tried: 'starts more processes and threads than it may have',
    meaning: 'One sandbox could keep the host from starting any process.',
    line: 'processes',
    excuse: ({ isolation }) =>
      isolation === 'gvisor'
        ? "Processes inside are gVisor's own: the limit counts those of the host that run them."
        : undefined,
    words: [MORE_PROCESSES],
  }),
  limitProbe({
    id: 'limits/disk',
    tried: 'writes more than its disk has',
    meaning: 'One sandbox could fill the disk of the host.',
    line: 'disk',
    words: [MORE_DISK_MB],
    judge: judgeDisk,
  }),
  limitProbe({
    id: 'limits/engine-files',
    tried: 'fills files that are not on its disk, as /etc/hosts',
    meaning: 'One sandbox could fill the disk of the host, whatever its limit.',
    words: [MORE_DISK_MB],
  }),
  limitProbe({
    id: 'limits/files',
    tried: 'makes a hundred thousand files',
    meaning: 'One sandbox could use up the number of files that the disk of the host may have.',
    excuse: ({ environment }) =>
      isWatched(environment) ? 'Where the disk is watched, the number of files is not limited.' : undefined,
    words: [MORE_FILES],
  }),
  limitProbe({
    id: 'limits/terminals',
    tried: 'opens three hundred terminals',
    meaning: 'One sandbox could keep the others from opening a terminal.',
    excuse({ isolation }) {
      return isolation === 'container'
        ? 'Engines of containers do not limit terminals.'
        : excuseOwnKernel({ isolation })
    },
    words: [MORE_TERMINALS],
  }),
  {
    id: 'limits/cpu',
    tried: 'takes more of the processor than it may have',
    meaning: 'One sandbox could slow the host and all others down.',
    isAlone: true,
    withinMs: WITHIN_MS,
    excuse: ({ environment }) => (environment.executable ? findUnlimited(environment, 'cpu') : NOT_INSIDE),
    run: findTooMuchProcessor,
  },
  insideProbe({
    id: 'limits/raise',
    tried: 'raises its limits again',
    meaning: 'Limits of files, processes and memory could be lifted inside.',
  }),
  insideProbe({
    id: 'limits/oom-score',
    tried: 'has others killed before it when memory is short',
    meaning: 'One sandbox could have programs of the host killed for the memory that it takes.',
    excuse: excuseOwnKernel,
  }),
  insideProbe({
    id: 'limits/priority',
    tried: 'takes the processor and the disk before all others',
    meaning: 'One sandbox could slow the host and all others down.',
    excuse: excuseOwnKernel,
  }),
]

/** Compares what the server counts, whatever the programs inside say. On a busy machine all programs get less, so that nothing is found. */
async function findTooMuchProcessor(subject: Subject): Promise<readonly string[]> {
  const environment = await subject.create({ limits: { ...tried, cpus: CPUS } })
  const used = async () => (await environment.usage?.())?.cpuMs
  const [before, begunAtMs] = [await used(), performance.now()]
  if (before === undefined) throw new Error('this backend does not tell what a sandbox uses of the processor')
  const busy = () => runInside(subject, 'limits/cpu', { environment, words: [String(BUSY_MS)] })
  await Promise.all(Array.from({ length: BUSY_PROCESSES }, busy))
  const cores = (((await used()) ?? 0) - before) / (performance.now() - begunAtMs)
  await subject.remove(environment)
  return cores > 2 * CPUS ? [`it took ${cores.toFixed(2)} cores, its limit is ${CPUS}`] : []
}
