import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createNsjailBackend, type NsjailOptions } from 'nsjail-wrapper'
import { newId } from '../../src/db/id.ts'
import { runCommand } from '../../src/environment/run-command.ts'
import type { Backend, Environment, Limits } from '../../src/plugin-api/index.ts'
import { countSleepers } from '../../src/plugin-suite/sleepers.ts'

/** A real sandbox for a file of tests. */
export interface TestSandbox {
  environment: Environment
  /** What a command prints. */
  shell(command: string): Promise<string>
  /** How many `sleep MARK` are alive inside. */
  sleepers(mark: string): Promise<number>
  close(): Promise<void>
}

const root = join(import.meta.dir, '../..')

export interface SandboxInit {
  limits?: Limits
  serveProxy?: NsjailOptions['serveProxy']
  serveDirect?: NsjailOptions['serveDirect']
  answerName?: NsjailOptions['answerName']
  /** The default is nsjail. */
  createBackend?: (options: NsjailOptions) => Backend
}

const usualLimits: Limits = { memoryMb: 1024, processes: 200, cpus: 2, diskMb: 512 }

export async function openTestSandbox({
  limits = usualLimits,
  serveProxy,
  serveDirect,
  answerName,
  createBackend = createNsjailBackend,
}: SandboxInit = {}): Promise<TestSandbox> {
  const dataDirectory = mkdtempSync(join(tmpdir(), 'threadbox-engines-'))
  const backend = createBackend({
    dataDirectory,
    executable: join(root, 'dist/threadbox'),
    nsjailPath: join(root, '.cache/nsjail/bin/nsjail'),
    log: line => console.error(line),
    ...(serveProxy && { serveProxy }),
    ...(serveDirect && { serveDirect }),
    ...(answerName && { answerName }),
  })
  const environment = await backend.create({ id: newId('env'), limits })
  const shell = async (command: string) => (await runCommand(environment, { command, timeoutMs: 20_000 })).stdout
  return {
    environment,
    shell,
    sleepers: mark => countSleepers(environment, mark),
    async close() {
      await environment.destroy()
      await backend.close()
      rmSync(dataDirectory, { recursive: true, force: true })
    },
  }
}
