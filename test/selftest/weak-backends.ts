import type { Backend, Environment, Limits } from '../../src/plugin-api/index.ts'

/** A backend whose every environment is changed, made or found. */
export function withEach(backend: Backend, change: (environment: Environment) => Environment): Backend {
  return {
    ...backend,
    create: async spec => change(await backend.create(spec)),
    async open(id) {
      const found = await backend.open(id)
      return found && change(found)
    },
  }
}

/** Gives the first environment to everybody. */
export function shareOne(backend: Backend): Backend {
  let first: Promise<Environment> | undefined
  const ids = new Set<string>()
  const as = async (id: string): Promise<Environment> => ({
    ...(await first!),
    id,
    destroy: async () => void ids.delete(id),
  })
  return {
    ...backend,
    create(spec) {
      first ??= backend.create(spec)
      ids.add(spec.id)
      return as(spec.id)
    },
    open: async id => (ids.has(id) ? await as(id) : undefined),
  }
}

/** Ends a command's own process, and nothing that it has started. */
export function killTheProcessAlone(environment: Environment): Environment {
  const { processes } = environment
  return {
    ...environment,
    async spawn({ signal, ...options }) {
      const child = await environment.spawn(options)
      const kill = () => child.kill('SIGTERM')
      signal?.addEventListener('abort', kill)
      if (signal?.aborted) kill()
      return { ...child, kill }
    },
    ...(processes && {
      processes: { ...processes, remove: async (pid: number) => processes.signal(pid, 'SIGTERM').catch(() => {}) },
    }),
  }
}

/** A mark that no process is given: the guest's begin far above. */
const NO_MARK = 1

/** Starts what a shell runs in a process without the mark of its command. The shell itself keeps it, and the guest looks at that alone. */
export function startWithoutMark(environment: Environment): Environment {
  const { processes } = environment
  const unmarked = <Options extends { command: string | readonly string[] }>(options: Options): Options =>
    typeof options.command === 'string'
      ? { ...options, command: ['sh', '-c', `prlimit --locks=${NO_MARK}:${NO_MARK} sh -c "$0"; exit`, options.command] }
      : options
  return {
    ...environment,
    spawn: options => environment.spawn(unmarked(options)),
    ...(processes && { processes: { ...processes, start: options => processes.start(unmarked(options)) } }),
  }
}

/** So much that no probe takes it, and so little that none of them can hurt the machine. */
const muchMore: Limits = { memoryMb: 4096, processes: 1000, cpus: 64, diskMb: 4096 }

/** Gives every environment these limits, whatever was asked for. */
export const limitHardly = (backend: Backend): Backend => ({
  ...backend,
  create: spec => backend.create({ ...spec, limits: muchMore }),
})
