import { ApiError } from '../errors.ts'
import type { Environment, EnvironmentProcesses, OutputStream, SandboxProcess } from '../plugin-api/index.ts'
import { readEach } from '../read/bytes.ts'
import { createProcessTable, type TakeOutput } from './process-table.ts'

/** Processes of an environment that keeps none itself: they are kept here, and end when this side goes. */
export const keepSpawned = (environment: Pick<Environment, 'spawn'>): EnvironmentProcesses =>
  createProcessTable(async (options, take) => {
    const child = await environment.spawn(options)
    if (options.pty && !child.resize) {
      child.kill()
      throw new ApiError('invalid_request', 'The backend of this sandbox has no terminals.')
    }
    const writer = child.stdin?.getWriter()
    writer?.closed.catch(() => {})
    return {
      pid: child.pid,
      exited: endOf(child, take),
      ...(writer && {
        async write(bytes) {
          await writer.write(bytes)
        },
        closeStdin: () => void writer.close().catch(() => {}),
      }),
      signal: name => child.kill(name),
      resize: size => child.resize?.(size),
      async killTree() {
        child.kill()
        await child.exited.catch(() => {})
      },
    }
  })

async function endOf(child: SandboxProcess, take: TakeOutput) {
  const drain = (stream: OutputStream) => readEach(child[stream], bytes => take(stream, bytes))
  await Promise.all([drain('stdout'), drain('stderr')])
  return await child.exited
}
