import { closeSync, statSync, writeSync } from 'node:fs'
import { openLibc } from '../../../src/guest/inside/libc.ts'

/** An error of Connect RPC; its HTTP status goes by the code. */
export class RpcError extends Error {
  constructor(
    readonly code: 'invalid_argument' | 'not_found' | 'already_exists' | 'internal' | 'unimplemented',
    message: string,
  ) {
    super(message)
  }

  get status(): number {
    return { invalid_argument: 400, not_found: 404, already_exists: 409, internal: 500, unimplemented: 501 }[this.code]
  }

  static of(error: unknown): RpcError {
    return error instanceof RpcError ? error : new RpcError('internal', String(error))
  }
}

interface Running {
  child: Bun.Subprocess
  config: { cmd: string; args: string[] }
  /** Its stdin: waits while nobody reads. */
  input?: { write(bytes: Uint8Array): Promise<void>; end(): void }
  /** Ends the output at the process's end, whoever else holds its pipes: what SIGTERM and SIGKILL do. */
  cutOutput(): void
}

type Event = Record<string, unknown>

const decoder = new TextDecoder()

/** A frame of Connect: a flag byte, a length in big-endian order, JSON. */
function frame(flag: number, message: unknown): Uint8Array {
  const json = Buffer.from(JSON.stringify(message))
  const head = Buffer.alloc(5)
  head.writeUInt8(flag, 0)
  head.writeUInt32BE(json.byteLength, 1)
  return Buffer.concat([head, json])
}

const inSelector = (body: any): number => Number(body?.process?.pid)

const libc = openLibc()

/** Pipes, as envd has them: they can be opened by name, which Bun's own cannot. */
function openPipes(hasInput: boolean) {
  const [input, out, error] = [hasInput ? libc.pipe('write') : undefined, libc.pipe('read'), libc.pipe('read')]
  let isOpen = input !== undefined
  return {
    stdio: [input?.readEnd ?? ('ignore' as const), out.writeEnd, error.writeEnd] as const,
    /** Once the process has them. */
    started() {
      for (const fd of [input?.readEnd, out.writeEnd, error.writeEnd]) if (fd !== undefined) closeSync(fd)
    },
    outputs: [out.readEnd, error.readEnd],
    input: {
      async write(bytes: Uint8Array) {
        for (let at = 0; at < bytes.byteLength && isOpen; ) {
          try {
            at += writeSync(input?.writeEnd ?? -1, bytes.subarray(at))
          } catch (error) {
            if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw new RpcError('internal', String(error))
            await Bun.sleep(2)
          }
        }
      },
      end() {
        if (isOpen && input) closeSync(input.writeEnd)
        isOpen = false
      },
    },
  }
}

export function createProcesses(defaults: Record<string, string>) {
  const running = new Map<number, Running>()

  const get = (pid: number): Running => {
    const found = running.get(pid)
    if (!found) throw new RpcError('not_found', `process with pid ${pid} not found`)
    return found
  }

  /** Starts it, as a child that is in no group of its own. Output is read only as fast as the stream is. */
  async function* run(body: any, limitMs: number): AsyncGenerator<Uint8Array> {
    const { cmd, args = [], envs = {}, cwd = '/root' } = body.process
    if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
      throw new RpcError('invalid_argument', `cwd '${cwd}' does not exist`)
    }
    const env = { HOME: '/root', USER: 'root', LOGNAME: 'root', ...defaults, ...envs }
    const cut = Promise.withResolvers<undefined>()
    const size = body.pty?.size
    const terminal: Uint8Array[] = []
    let wake = () => {}
    const pipes = size ? undefined : openPipes(body.stdin !== false)
    let child: Bun.Subprocess
    try {
      child = Bun.spawn([cmd, ...args], {
        cwd,
        env,
        ...(!pipes
          ? {
              terminal: {
                cols: size.cols,
                rows: size.rows,
                data: (_: unknown, bytes: Uint8Array) => {
                  terminal.push(Uint8Array.from(bytes))
                  wake()
                },
              },
            }
          : { stdio: [...pipes.stdio] }),
      })
    } catch (error) {
      pipes?.input.end()
      for (const fd of pipes?.outputs ?? []) closeSync(fd)
      throw new RpcError('invalid_argument', `error starting process '${cmd}': ${error}`)
    } finally {
      pipes?.started()
    }
    const { pid } = child
    const entry: Running = { child, config: { cmd, args }, cutOutput: () => cut.resolve(undefined) }
    if (pipes) entry.input = pipes.input
    running.set(pid, entry)
    const timer = limitMs > 0 && setTimeout(() => child.kill('SIGKILL'), limitMs)
    const ended = child.exited.then(() => {
      if (timer) clearTimeout(timer)
      running.delete(pid)
      pipes?.input.end()
      wake()
      return undefined
    })
    yield frame(0, { event: { start: { pid } } })

    // A caller that is gone is no end of the process: what it prints then is read and dropped.
    let isRead = false
    const sources = (pipes?.outputs ?? []).map((fd, index) => ({
      name: index === 0 ? 'stdout' : 'stderr',
      fd,
      reader: Bun.file(fd).stream().getReader(),
    }))
    try {
      if (size) {
        for (;;) {
          for (let bytes = terminal.shift(); bytes; bytes = terminal.shift()) yield data('pty', bytes)
          if (child.exitCode !== null || child.signalCode !== null) break
          await new Promise<void>(resolve => (wake = resolve))
        }
        await Bun.sleep(20)
        for (let bytes = terminal.shift(); bytes; bytes = terminal.shift()) yield data('pty', bytes)
      } else {
        const next = (source: (typeof sources)[number]) =>
          source.reader.read().then(({ value, done }) => ({ source, value, done }))
        const reads = new Map(sources.map(source => [source, next(source)]))
        const isCut = cut.promise.then(() => ended)
        while (reads.size > 0) {
          const step = await Promise.race([...reads.values(), isCut])
          if (!step) break
          if (step.done) {
            reads.delete(step.source)
            closeSync(step.source.fd)
          } else {
            reads.set(step.source, next(step.source))
            yield data(step.source.name, step.value ?? new Uint8Array())
          }
        }
        isRead = reads.size === 0
      }
      await ended
      const exitCode = child.exitCode ?? -1
      yield frame(0, {
        event: { end: { exitCode, exited: child.signalCode === null, status: child.signalCode ?? `exit ${exitCode}` } },
      })
      yield frame(2, {})
    } finally {
      if (!isRead) for (const { reader } of sources) void drain(reader)
    }
  }

  const data = (name: string, bytes: Uint8Array) =>
    frame(0, { event: { data: { [name]: Buffer.from(bytes).toString('base64') } } })

  return {
    async start(request: Request): Promise<Response> {
      const bytes = new Uint8Array(await request.arrayBuffer())
      const body = JSON.parse(decoder.decode(bytes.subarray(5)))
      const events = run(body, Number(request.headers.get('connect-timeout-ms') ?? 0))
      const stream = new ReadableStream<Uint8Array>(
        {
          async pull(controller) {
            try {
              const { value, done } = await events.next()
              if (done) controller.close()
              else controller.enqueue(value)
            } catch (error) {
              const { code, message } = RpcError.of(error)
              controller.enqueue(frame(2, { error: { code, message } }))
              controller.close()
            }
          },
          cancel: () => void events.return(undefined),
        },
        { highWaterMark: 0 },
      )
      return new Response(stream, { headers: { 'content-type': 'application/connect+json' } })
    },

    async unary(method: string, body: any): Promise<Event> {
      if (method === 'List') {
        return { processes: [...running].map(([pid, { config }]) => ({ config, pid })) }
      }
      const entry = get(inSelector(body))
      switch (method) {
        case 'SendInput': {
          const { stdin, pty } = body.input
          const bytes = Buffer.from(stdin ?? pty ?? '', 'base64')
          if (pty !== undefined) entry.child.terminal?.write(bytes)
          else if (!entry.input) throw new RpcError('internal', 'stdin not enabled or closed')
          else await entry.input.write(bytes)
          return {}
        }
        case 'CloseStdin':
          entry.input?.end()
          return {}
        case 'SendSignal': {
          // envd knows these two.
          const known: Record<string, NodeJS.Signals> = { SIGNAL_SIGKILL: 'SIGKILL', SIGNAL_SIGTERM: 'SIGTERM' }
          const signal = known[body.signal]
          if (!signal) throw new RpcError('unimplemented', `invalid signal: ${body.signal}`)
          entry.cutOutput()
          entry.child.kill(signal)
          return {}
        }
        case 'Update':
          entry.child.terminal?.resize(body.pty.size.cols, body.pty.size.rows)
          return {}
        default:
          throw new RpcError('unimplemented', method)
      }
    },
  }
}

async function drain(reader: { read(): Promise<{ done: boolean }> }): Promise<void> {
  try {
    while (!(await reader.read()).done) {
      // Dropped.
    }
  } catch {
    // A read was under way: it is the last one's.
  }
}
