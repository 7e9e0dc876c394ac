import { constants } from 'node:os'
import { isObject, objectOf, parseJson } from '../read/json.ts'
import type { Given } from './command-line.ts'
import { findServer, readEvents, type ServerClient } from './server-client.ts'

/** bash as a login shell, else the shell that the sandbox has. */
const LOGIN_SHELL = 'if [ -n "$BASH_VERSION" ]; then exec bash -l; else exec sh -l; fi'

/** Signals that end this program; they end the process inside too. */
const ending = ['SIGHUP', 'SIGINT', 'SIGTERM'] as const

/**
 * Opens a shell, or runs a command, in a sandbox of a running server: with a terminal when stdin and stdout are one, else
 * with pipes. Returns the exit code of the process.
 */
export async function shell(given: Given): Promise<number> {
  const [sandbox = '', ...command] = given.words
  const server = findServer(given)
  const path = `/v1/sandboxes/${encodeURIComponent(sandbox)}/processes`
  const inTerminal = process.stdin.isTTY && process.stdout.isTTY
  const response = await server.request('POST', path, {
    command: command.length > 0 ? command : LOGIN_SHELL,
    name: 'shell',
    waitForReader: true,
    ...(inTerminal
      ? { pty: sizeHere(), ...(process.env.TERM && { envs: { TERM: process.env.TERM } }) }
      : { stdin: true }),
  })
  const { pid } = (await response.json()) as { pid: number }
  const place = `${path}/${pid}`
  const left = Promise.withResolvers<number>()
  for (const name of ending) process.once(name, () => left.resolve(128 + constants.signals[name]))
  try {
    return await Promise.race([inTerminal ? throughTerminal(server, place) : throughPipes(server, place), left.promise])
  } finally {
    // The process may have ended, or the server may be gone.
    await server.request('DELETE', place).catch(() => {})
  }
}

/** Connects this terminal to the process's. Restores it at the end, in every case. */
async function throughTerminal(server: ServerClient, place: string): Promise<number> {
  const { stdin, stdout } = process
  const socket = server.openSocket(`${place}/terminal?hangup=true`)
  socket.binaryType = 'nodebuffer'
  const ended = Promise.withResolvers<number>()
  const type = (bytes: Buffer) => void socket.send(bytes)
  const resize = () => socket.send(JSON.stringify({ type: 'resize', ...sizeHere() }))
  const restore = () => {
    stdin.setRawMode(false)
    stdin.pause()
  }
  process.once('exit', restore)
  socket.onopen = () => {
    stdin.setRawMode(true)
    stdin.on('data', type).resume()
    stdout.on('resize', resize)
  }
  socket.onmessage = ({ data }) => {
    if (typeof data !== 'string') return void stdout.write(data)
    const { type, exitCode } = objectOf(parseJson(data)) ?? {}
    if (type === 'exit') ended.resolve(Number(exitCode))
  }
  socket.onclose = ({ reason }) =>
    ended.reject(new Error(`the connection to the terminal was lost${reason && `: ${reason}`}`))
  try {
    return await ended.promise
  } finally {
    stdin.off('data', type)
    stdout.off('resize', resize)
    restore()
  }
}

/** Forwards stdin, and prints the output of the process. */
async function throughPipes(server: ServerClient, place: string): Promise<number> {
  // The process no longer reads its stdin.
  void server.request('POST', `${place}/stdin?close=true`, Bun.stdin.stream()).catch(() => {})
  for await (const json of readEvents(await server.request('GET', `${place}/output?encoding=base64&hangup=true`))) {
    const event = parseJson(json)
    if (!isObject(event)) continue
    const { type, data, exitCode, message } = event
    if (type === 'stdout' || type === 'stderr') {
      try {
        await Bun.write(Bun[type], Buffer.from(String(data), 'base64'))
      } catch (error) {
        // The reader of our stdout has left.
        if (error instanceof Error && 'code' in error && error.code === 'EPIPE') return 128 + constants.signals.SIGPIPE
        throw error
      }
    } else if (type === 'exit') return Number(exitCode)
    else if (type === 'error') throw new Error(String(message))
  }
  throw new Error('the connection to the process was lost')
}

const sizeHere = () => ({ columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 })
