import { Database } from 'bun:sqlite'
import { copyFileSync, cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Server, temporaryDirectory } from '../support/server.ts'
import { until } from '../support/until.ts'

const litestream = join(import.meta.dir, '../../node_modules/@flydotio/litestream-linux-x64/litestream')

/** As the recipe in docs/litestream.md. */
const flags = ['--wal-checkpoint', 'external', '--spares', '0']

export interface Loss {
  /** How long before the loss the first chat ended that is not there any more. */
  lostMs: number
  /** How many chats had ended, and how many of them are there. */
  chats: number
  kept: number
  /** How often Litestream had to begin anew, with a copy of the whole database. */
  generations: number
}

/**
 * Runs a server under load with Litestream beside it, ends both at once after `ms`, and goes on from the replica and the key file
 * alone, in another directory. Throws when what is there is not whole, or no chat can go on.
 */
export async function loseMachine(ms: number): Promise<Loss> {
  const directory = temporaryDirectory()
  const [replica, config, restored] = ['replica', 'litestream.yml', 'restored'].map(name => join(directory, name)) as [
    string,
    string,
    string,
  ]
  const server = new Server({ dataDirectory: join(directory, 'data'), flags })
  const database = join(server.dataDirectory, 'threadbox.db')
  writeFileSync(
    config,
    `dbs:\n  - path: ${database}\n    replicas:\n      - type: file\n        path: ${replica}\n        sync-interval: 1s\n`,
  )
  await server.start()
  const kept = await server.sandbox({ envs: { TOKEN: 'secret' } })
  await using copying = replicate(config)
  await until(() => copying.said.includes('snapshot written'))

  const ended: { threadId: string; text: string; atMs: number }[] = []
  let isOver = false
  const chatOn = async (lane: number) => {
    for (let turn = 0; !isOver; turn++) {
      const text = `lane ${lane} turn ${turn} ${'word '.repeat(50)}`.trim()
      const response = await server.chat(text, { sandboxId: kept })
      const answer = await response.text()
      if (!answer.endsWith('[DONE]\n\n')) return
      ended.push({ threadId: response.headers.get('x-thread-id') ?? '', text, atMs: performance.now() })
    }
  }
  // The last of each breaks with the server.
  const load = [0, 1, 2, 3].map(lane => chatOn(lane).catch(() => {}))
  await Bun.sleep(ms)
  const lostAtMs = performance.now()
  copying.kill()
  await server.kill()
  isOver = true
  await Promise.all(load)

  // Nothing else of the machine is used from here on.
  mkdirSync(restored)
  copyFileSync(join(server.dataDirectory, 'threadbox.key'), join(restored, 'threadbox.key'))
  const copy = join(directory, 'copy')
  cpSync(replica, copy, { recursive: true })
  const restore = Bun.spawnSync([litestream, 'restore', '-o', join(restored, 'threadbox.db'), `file://${copy}`])
  if (restore.exitCode !== 0) throw new Error(restore.stderr.toString())
  const generations = [...new Bun.Glob('generations/*').scanSync({ cwd: copy, onlyFiles: false })].length
  assertWhole(join(restored, 'threadbox.db'))

  const other = await new Server({ dataDirectory: restored, flags, apiKey: server.key }).start()
  const before = ended.filter(({ atMs }) => atMs <= lostAtMs)
  const missing: number[] = []
  for (const { threadId, text, atMs } of before) {
    const { status, body } = await other.ask('GET', `/v1/sandboxes/${kept}/threads/${threadId}`)
    const contents = status === 200 ? body.messages.map(({ content }: { content: string }) => content) : []
    if (contents.join() !== [text, text].join()) missing.push(atMs)
  }
  // What is encrypted in the database can be read with the key file.
  const { body } = await other.ask('GET', `/v1/sandboxes/${kept}`)
  if (body.variables?.join() !== 'TOKEN') throw new Error(`the sandbox has lost its variables: ${JSON.stringify(body)}`)
  await assertGoesOn(other)
  await other.stop()
  // The lost machine is one only for the test: its sandboxes still run.
  await server.close()
  rmSync(directory, { recursive: true, force: true })
  const lostMs = missing.length === 0 ? 0 : lostAtMs - Math.min(...missing)
  return { lostMs, chats: before.length, kept: before.length - missing.length, generations }
}

function replicate(config: string) {
  const child = Bun.spawn([litestream, 'replicate', '-config', config], { stdio: ['ignore', 'pipe', 'pipe'] })
  const process = {
    said: '',
    kill: () => child.kill('SIGKILL'),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await child.exited
    },
  }
  const collect = async (output: ReadableStream<Uint8Array>) => {
    for await (const bytes of output) process.said += Buffer.from(bytes).toString()
  }
  void collect(child.stdout)
  void collect(child.stderr)
  return process
}

function assertWhole(path: string): void {
  const db = new Database(path, { readonly: true })
  const faults = [
    ...db.query('pragma integrity_check').values().flat(),
    ...db.query('pragma foreign_key_check').values(),
  ]
  db.close()
  if (faults.join() !== 'ok') throw new Error(`the restored database is broken: ${faults.join()}`)
}

/** With the same key, and with a sandbox of its own: the files of sandboxes are not in the database. */
async function assertGoesOn(server: Server): Promise<void> {
  const response = await server.chat('it goes on')
  const place = {
    sandboxId: response.headers.get('x-sandbox-id') ?? '',
    threadId: response.headers.get('x-thread-id') ?? '',
  }
  await response.text()
  const answer = await (await server.chat('and on', place)).text()
  if (!answer.includes('{"type":"finish"}') || answer.includes('"type":"error"'))
    throw new Error(`no chat goes on: ${answer}`)
  await server.ask('DELETE', `/v1/sandboxes/${place.sandboxId}`)
}
