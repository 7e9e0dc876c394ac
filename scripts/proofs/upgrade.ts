/**
 * Upgrades and goes back under a running chat, ROUNDS times: `bun scripts/proofs/upgrade.ts [ROUNDS]`, after scripts/build, as root.
 * A reader follows the reply over the restarts; what it has seen at the end is compared with the whole stream. Each round
 * upgrades to a later version and kills one such upgrade at a random moment, tries one with a fault, and goes there and back.
 */
import { appendFileSync, copyFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { findServerProcess } from '../../src/cli/running-servers.ts'
import { buildNext, NEXT_FAULT, NEXT_VERSION } from '../../test/support/next-build.ts'
import { executable as built, command, Server, temporaryDirectory } from '../../test/support/server.ts'
import { eventsOf } from '../../test/support/sse.ts'
import { freePort } from '../../test/upgrade/free-port.ts'

const rounds = Number(process.argv[2] ?? 10)
const root = temporaryDirectory()
const at = (name: string) => join(root, name)
const executable = at('bin/threadbox')
const faults = ['exits', 'hangs', 'refuses']

mkdirSync(at('next'))
const next = await buildNext(at('next'))
const same = at('same')
copyFileSync(built, same)
// This is another file of the same version.
appendFileSync(same, '\n')

const silences: number[] = []
const holds: number[] = []
try {
  for (let round = 0; round < rounds; round++) await play(round)
  console.log(`${rounds} rounds; ms without an answer: ${describe(silences)}; ms without work: ${describe(holds)}`)
} finally {
  rmSync(root, { recursive: true })
}

async function play(round: number): Promise<void> {
  rmSync(at('bin'), { recursive: true, force: true })
  mkdirSync(at('bin'))
  copyFileSync(built, executable)
  // In half of the rounds the reply is interrupted by the restart; in the others the old server waits for its end.
  const graceMs = round % 2 === 0 ? '200' : '20000'
  const fault = faults[round % faults.length] ?? ''
  const server = new Server({
    ...{ command: [executable], flags: ['--spares', '0', '--grace-ms', graceMs], port: freePort() },
    env: { [NEXT_FAULT]: fault },
  })
  await server.start()
  const id = await server.sandbox()
  await server.exec(id, 'echo $$ >/tmp/kept; sleep 86399 >/dev/null 2>&1 & echo $! >/tmp/pid')

  await under(server, id, ['upgrade', next, '--ready-within', '5'], 1)
  await end(server)
  assert((await versionOf(server)) !== NEXT_VERSION, 'went back')
  await under(server, id, ['upgrade', same], 0)
  await under(server, id, ['upgrade', '--back'], 0)

  delete (server.options.env as Record<string, string>)[NEXT_FAULT]
  await server.stop()
  await server.start()
  const killed = Bun.spawn([executable, 'upgrade', next, '--data-dir', server.dataDirectory], {
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  await Bun.sleep(Math.random() * 3000)
  killed.kill('SIGKILL')
  await killed.exited
  assert((await command(['version'], { command: [executable] })).code === 0, 'an executable that runs')
  // The command may have been killed while the server was starting again.
  while (!(await server.ask('GET', '/v1/me').catch(() => undefined))) await Bun.sleep(20)
  await under(server, id, ['upgrade', next], 0)
  assert((await versionOf(server)) === NEXT_VERSION, 'the next version runs')
  assert((await server.exec(id, 'kill -0 $(cat /tmp/pid) && echo on')).stdout === 'on\n', 'the sandbox ran on')
  await end(server)
  await server.close()
  console.log(`round ${round + 1}: ${fault}, grace ${graceMs} ms`)
}

/** Runs a command while a reply is written and read, and while requests come all the time. */
async function under(server: Server, sandboxId: string, args: string[], expected: number): Promise<void> {
  const reply = await server.chat('/slow 40', { sandboxId })
  const path = `/v1/chat/echo/${sandboxId}/stream?threadId=${reply.headers.get('x-thread-id')}`
  const reading = follow(server, path, reply)
  let isOver = false
  const asking = Promise.all([
    longestSilence(
      () => isOver,
      () => server.ask('GET', '/health').then(() => true),
      silences,
    ),
    longestSilence(
      () => isOver,
      () => server.ask('GET', '/v1/me').then(({ status }) => status === 200),
      holds,
    ),
  ])
  const { code, stderr } = await command([...args, '--data-dir', server.dataDirectory], { command: [executable] })
  isOver = true
  await asking
  assert(code === expected, `${args.join(' ')}: ${code} ${stderr}`)
  const seen = await reading
  const headers = { 'last-event-id': `${reply.headers.get('x-run-id')}/0` }
  const again = await Array.fromAsync(eventsOf(await server.request('GET', path, { headers })))
  const whole = again.map(({ id }) => id).filter(Boolean)
  assert(Bun.deepEquals(seen, whole) && whole.length > 3, `each chunk once: ${seen.length} of ${whole.length}`)
}

async function follow(server: Server, path: string, first: Response): Promise<(string | undefined)[]> {
  const seen: (string | undefined)[] = []
  for (let answer: Response | undefined = first; ; ) {
    try {
      for await (const { id, data } of eventsOf(answer)) {
        if (data === '[DONE]') return seen
        if (id) seen.push(id)
      }
    } catch {
      // The server that gave it has ended.
    }
    do {
      await Bun.sleep(10)
      const headers: Record<string, string> = seen.length > 0 ? { 'last-event-id': seen.at(-1) ?? '' } : {}
      answer = await server.request('GET', path, { headers }).catch(() => undefined)
    } while (answer?.status !== 200)
  }
}

async function longestSilence(isOver: () => boolean, ask: () => Promise<boolean>, into: number[]): Promise<void> {
  let longest = 0
  for (let last = performance.now(); !isOver(); await Bun.sleep(2)) {
    if (!(await ask().catch(() => false))) continue
    longest = Math.max(longest, performance.now() - last)
    last = performance.now()
  }
  into.push(longest)
}

/** Ends a server that the command has started, which is no child of this process. */
async function end(server: Server): Promise<void> {
  const pid = findServerProcess(server.dataDirectory)
  if (pid) process.kill(pid, 'SIGTERM')
  await server.ended()
  while (findServerProcess(server.dataDirectory)) await Bun.sleep(10)
  await server.start()
}

async function versionOf(server: Server): Promise<string> {
  return (await server.ask('GET', '/health')).body.version
}

function assert(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(`not so: ${what}`)
}

function describe(values: number[]): string {
  const sorted = values.map(Math.round).sort((a, b) => a - b)
  return `median ${sorted[sorted.length >> 1]}, worst ${sorted.at(-1)}`
}
