// Backups under load, with kills; each is restored after the data directory was wiped, and compared.
// bun scripts/proofs/backup.ts [ROUNDS=20] (as root; builds first: scripts/build)
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const rounds = Number(process.argv[2] ?? 20)
const executable = join(import.meta.dir, '../../dist/threadbox')
const scratch = mkdtempSync(join(tmpdir(), 'threadbox-proof-'))
const [data, backups] = [join(scratch, 'data'), join(scratch, 'backups')]
const key = `proof-${crypto.randomUUID()}`
const SANDBOXES = 3

interface Place {
  id: string
  sandboxId: string
  threadId?: string
  sum: string
  /** The messages whose reply has ended, and the lines of the log at that time. */
  acknowledged: number
  lines: number
}

let server: Bun.Subprocess<'ignore', 'pipe', 'pipe'> | undefined
let url = ''

async function start(): Promise<void> {
  const child = Bun.spawn([executable, 'serve', '--data-dir', data, '--port', '0'], {
    env: { PATH: process.env.PATH ?? '', HOME: '/root', THREADBOX_API_KEY: key },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  server = child
  let said = ''
  const { promise, resolve } = Promise.withResolvers<string>()
  void (async () => {
    for await (const bytes of child.stdout) {
      said += new TextDecoder().decode(bytes)
      const [, at] = /^threadbox listening on (\S+)\n/m.exec(said) ?? []
      if (at) resolve(at)
    }
    resolve('')
  })()
  url = await promise
  if (!url) throw new Error(`the server did not start: ${said}${await child.stderr.text()}`)
  void child.stderr.text()
}

async function stop(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  server?.kill(signal)
  await server?.exited
}

type Answer = ReturnType<typeof JSON.parse>

async function ask(method: string, path: string, body?: object): Promise<Answer> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text
}

const exec = async (place: Place, command: string): Promise<string> =>
  (await ask('POST', `/v1/sandboxes/${place.id}/exec`, { command })).stdout

const write = (place: Place) =>
  exec(
    place,
    '(i=$(tail -n 1 log 2>/dev/null || echo 0); while :; do i=$((i+1)); echo $i >>log; done) >/dev/null 2>&1 &',
  )

async function chat(place: Place): Promise<void> {
  const text = `message ${place.acknowledged + 1}`
  const messages = [{ role: 'user', parts: [{ type: 'text', text }] }]
  const { sandboxId, threadId } = place
  const reply = await ask('POST', '/v1/chat/echo', { sandboxId, ...(threadId && { threadId }), messages })
  if (!/"type":"finish"/.test(reply)) throw new Error(`no end: ${reply}`)
  place.threadId ??= (await ask('GET', `/v1/sandboxes/${place.id}/threads`))[0].id
  place.acknowledged++
}

/**
 * Chats with all sandboxes until it is told to end. A message whose reply was cut may be stored or not, so its thread gets no more
 * messages.
 */
function load(places: readonly Place[]): () => Promise<void> {
  let isOver = false
  const talks = places.map(async place => {
    while (!isOver) {
      try {
        await chat(place)
      } catch {
        return
      }
    }
  })
  return async () => {
    isOver = true
    await Promise.all(talks)
  }
}

function create(): Bun.Subprocess<'ignore', 'pipe', 'pipe'> {
  return Bun.spawn([executable, 'backup', 'create', backups, '--data-dir', data, '--json', '--keep', '1'], {
    env: { PATH: process.env.PATH ?? '' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

function killJails(): void {
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
      if (words.includes('--config') && words.some(word => word.startsWith(`${data}/sandboxes/`)))
        process.kill(Number(pid), 'SIGKILL')
    } catch {
      // The run has ended.
    }
  }
}

/** Removes what the kernel keeps of a killed server: mounts of an interrupted start, and cgroups. */
function tidy(places: readonly Place[]): void {
  for (const { sandboxId } of places) {
    const script = `for each in /run/threadbox/*.$1; do while umount -lR "$each" 2>/dev/null; do :; done; rmdir "$each"; done
rmdir /sys/fs/cgroup/threadbox/*.$1 /sys/fs/cgroup/*/threadbox/*.$1`
    Bun.spawnSync(['sh', '-c', script, 'sh', sandboxId], { stderr: 'ignore' })
  }
}

async function round(places: Place[], number: number): Promise<void> {
  for (const place of places) await write(place)
  const endLoad = load(places)
  await Bun.sleep(300 + Math.random() * 300)
  for (const place of places) place.lines = Number((await exec(place, 'tail -n 1 log')).trim())
  const before = places.map(({ acknowledged, lines }) => ({ acknowledged, lines }))
  const kind = ['none', 'backup', 'server', 'both'][number % 4] ?? ''
  let child = create()
  if (kind !== 'none') {
    await Bun.sleep(Math.random() * 1200)
    if (kind !== 'server') {
      child.kill('SIGKILL')
      await child.exited
    }
    if (kind !== 'backup') await stop('SIGKILL')
    if (kind !== 'server') child = create()
    if (kind !== 'backup') await start()
  }
  const made = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error(`backup: ${await child.stderr.text()}`)
  await endLoad()
  const { backup, bytes, sandboxes } = JSON.parse(made)
  await stop('SIGKILL')
  killJails()
  rmSync(data, { recursive: true, force: true })
  tidy(places)
  const restored = Bun.spawnSync([executable, 'backup', 'restore', backup, '--data-dir', data])
  if (restored.exitCode !== 0) throw new Error(`restore: ${restored.stderr}`)
  await start()
  for (const [index, place] of places.entries()) await compare(place, before[index] ?? { acknowledged: 0, lines: 0 })
  const frozen = sandboxes.map(({ frozenMs }: { frozenMs: number }) => frozenMs).join(' ')
  console.log(`round ${number}: killed ${kind}, ${bytes} bytes, frozen for ${frozen} ms, equal`)
}

async function compare(place: Place, before: { acknowledged: number; lines: number }): Promise<void> {
  const sum = await exec(place, 'sha256sum data')
  if (sum !== place.sum) throw new Error(`${place.id}: ${sum} is not ${place.sum}`)
  const lines = (await exec(place, 'seq "$(wc -l <log)" | cmp - log && wc -l <log')).trim()
  if (!(Number(lines) >= before.lines)) throw new Error(`${place.id}: ${lines} lines of ${before.lines}`)
  const { messages } = await ask('GET', `/v1/sandboxes/${place.id}/threads/${place.threadId}`)
  const texts = messages
    .filter(({ role }: { role: string }) => role === 'user')
    .map(({ content }: { content: string }) => content)
  const wrong = texts.find((text: string, index: number) => text !== `message ${index + 1}`)
  if (wrong !== undefined || texts.length < before.acknowledged)
    throw new Error(`${place.id}: ${texts.length} messages of ${before.acknowledged}, ${wrong}`)
  place.acknowledged = texts.length
  await chat(place)
}

const places: Place[] = []
try {
  await start()
  for (let count = 0; count < SANDBOXES; count++) {
    const { id, sandboxId } = await ask('POST', '/v1/sandboxes', { agent: 'echo' })
    const place: Place = { id, sandboxId, sum: '', acknowledged: 0, lines: 0 }
    await exec(place, 'head -c 20000000 /dev/urandom >data')
    place.sum = await exec(place, 'sha256sum data')
    await chat(place)
    places.push(place)
  }
  for (let number = 1; number <= rounds; number++) await round(places, number)
  for (const { id } of places) await ask('DELETE', `/v1/sandboxes/${id}`)
  await stop('SIGTERM')
  console.log(`${rounds} rounds: everything was restored`)
} finally {
  await stop('SIGKILL')
  killJails()
  tidy(places)
  rmSync(scratch, { recursive: true, force: true })
}
