import type { Duplex } from 'node:stream'
import { newId } from '../db/id.ts'
import { type CommandOptions, type CommandResult, runCommand } from '../environment/run-command.ts'
import type { Backend, Environment, Limits, PluginContext } from '../plugin-api/index.ts'
import { countSleepers } from './sleepers.ts'

export type ServeProxy = PluginContext['serveProxy']

/** A backend under test, and the environment that most tests share. */
export interface BackendSubject {
  backend: Backend
  environment: Environment
  /** Serves connections to the proxy; `echoProxy` unless a test sets another. */
  serveProxy: ServeProxy
  /** Opens another instance of the backend on the same data. */
  open(): Promise<Backend>
  create(): Promise<Environment>
  /** The limits that `create` asks for. */
  limits: Limits
  /** Runs a shell command in the shared environment. */
  shell(command: string, options?: Partial<CommandOptions>): Promise<CommandResult>
  /** Counts the living processes `sleep MARK` inside. */
  sleepers(mark: string, inside?: Environment): Promise<number>
}

/** Sends the id of the environment that connects, then echoes. */
export const echoProxy: ServeProxy = (environmentId: string, socket: Duplex) => {
  socket.on('error', () => {})
  socket.write(`${environmentId} `)
  socket.pipe(socket)
}

/** Opens nothing yet: the suite does that. */
export function createSubject(openBackend: (serveProxy: ServeProxy) => Promise<Backend>): BackendSubject {
  const limits = { memoryMb: 512, processes: 200, cpus: 2, diskMb: 512 }
  let backend: Backend | undefined
  let environment: Environment | undefined
  const subject: BackendSubject = {
    get backend() {
      return present(backend)
    },
    set backend(given) {
      backend = given
    },
    get environment() {
      return present(environment)
    },
    set environment(given) {
      environment = given
    },
    serveProxy: echoProxy,
    open: () => openBackend((id, socket) => subject.serveProxy(id, socket)),
    limits,
    create: () => subject.backend.create({ id: newId('env'), limits }),
    shell: (command, options = {}) => runCommand(subject.environment, { command, timeoutMs: 20_000, ...options }),
    sleepers: (mark, inside = subject.environment) => countSleepers(inside, mark),
  }
  return subject
}

function present<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('the backend gave no environment to test')
  return value
}
