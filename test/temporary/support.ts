import { afterAll, beforeAll, expect } from 'bun:test'
import { existsSync, globSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { leftovers } from '../support/leftovers.ts'
import { type CommandResult, executable, patiently, plainEnvironment, temporaryDirectory } from '../support/server.ts'
import { withoutProgress } from './progress.ts'

export interface RunOptions {
  stdin?: string
  env?: Record<string, string>
}

/** Runs `threadbox run` and `exec` in a directory of a file's own, where nothing may be left of them. */
export interface OneOffs {
  /** Where commands run; what they bring out is found here. */
  directory: string
  run(args: readonly string[], options?: RunOptions): Promise<CommandResult>
  spawn(args: readonly string[], options?: RunOptions): Bun.Subprocess<'pipe', 'pipe', 'pipe'>
  /** What the machine has of them. */
  left(): Promise<string[]>
}

export function useOneOffs(): OneOffs {
  patiently()
  const root = temporaryDirectory()
  const [directory, data] = [join(root, 'work'), join(root, 'data')]
  const oneOffs: OneOffs = {
    directory,
    spawn(args, { stdin = '', env = {} } = {}) {
      const child = Bun.spawn([executable, ...args], {
        cwd: directory,
        env: { ...plainEnvironment, THREADBOX_DATA_DIR: data, ...env },
        stdio: ['pipe', 'pipe', 'pipe'],
      })
      child.stdin.write(stdin)
      child.stdin.end()
      return child
    },
    async run(args, options) {
      const child = oneOffs.spawn(args, options)
      const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
      return { code, stdout, stderr: withoutProgress(stderr) }
    },
    left: async () => {
      // Of those that had been killed while they looked what they may limit.
      const key = Bun.hash(realpathSync(data)).toString(36)
      const probes = globSync(`/sys/fs/cgroup/{,*/}threadbox/probe-${key}-*`)
      const dead = probes.filter(path => !existsSync(`/proc/${path.split('-').at(-1)}`))
      return [...(await leftovers(`${data}/`)), ...readdirSync(data), ...dead]
    },
  }
  beforeAll(async () => {
    await Bun.$`mkdir -p ${directory} ${data}`
  })
  afterAll(async () => {
    expect(await oneOffs.left()).toEqual([])
    rmSync(root, { recursive: true })
  })
  return oneOffs
}
