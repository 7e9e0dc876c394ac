import { existsSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Environment, ModelAccess } from '../../src/plugin-api/index.ts'
import type { ModelServer, Wire } from './model-server.ts'
import { openTestSandbox, type TestSandbox } from './sandbox.ts'

const root = join(import.meta.dir, '../..')

/** A sandbox from which a fake model is reached as if it were the gateway. */
export const openAgentSandbox = (model: ModelServer): Promise<TestSandbox> =>
  openTestSandbox({
    limits: { memoryMb: 2048, processes: 400, cpus: 2, diskMb: 2048 },
    serveProxy: (_, socket) => joinTo(socket, Number(new URL(model.access('anthropic').baseUrl).port)),
  })

/** The fake model as a program inside reaches it. */
export const accessInside = (model: ModelServer, wire: Wire, more: Partial<ModelAccess> = {}): ModelAccess =>
  model.access(wire, { insideBaseUrl: 'http://127.0.0.1:3128/v1', ...more })

function joinTo(socket: Duplex, port: number): void {
  const upstream = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  pipeline(socket, upstream, socket).catch(() => {})
  socket.on('close', () => upstream.destroy())
}

/** Brings the scripted agent: `acp-agent`. */
export async function bringScriptedAgent(environment: Environment): Promise<void> {
  const source = await Bun.file(join(import.meta.dir, 'acp-agent.ts')).text()
  const script = new Bun.Transpiler({ loader: 'ts' }).transformSync(source)
  await environment.files.write('/usr/local/lib/acp-agent.mjs', Buffer.from(script))
  await environment.files.write(
    '/usr/local/bin/acp-agent',
    Buffer.from('#!/bin/sh\nexec node /usr/local/lib/acp-agent.mjs\n'),
  )
  await run(environment, ['chmod', '+x', '/usr/local/bin/acp-agent'])
}

/** A program that scripts/agent-programs has installed, packed. Unpacked in /opt, its commands are in the PATH by `link`. */
export function packProgram(name: string): { body: ReadableStream<Uint8Array>; link: string } {
  const directory = join(root, '.cache/agents')
  if (!existsSync(join(directory, name))) throw new Error(`first: scripts/agent-programs install ${name}`)
  const { stdout } = Bun.spawn(['tar', '-C', directory, '-c', name], { stdout: 'pipe', stderr: 'inherit' })
  return { body: stdout, link: `ln -s /opt/${name}/node_modules/.bin/* /usr/local/bin/` }
}

export async function bringProgram(environment: Environment, name: string): Promise<void> {
  const { body, link } = packProgram(name)
  const child = await environment.spawn({ command: ['tar', '-x', '-C', '/opt'], stdin: 'pipe' })
  if (child.stdin) await body.pipeTo(child.stdin)
  if ((await child.exited).exitCode !== 0) throw new Error(`${name} could not be brought`)
  await run(environment, ['sh', '-c', link])
}

async function run(environment: Environment, command: string[]): Promise<void> {
  const { exitCode } = await (await environment.spawn({ command })).exited
  if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}`)
}
