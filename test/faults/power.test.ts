import { expect, test } from 'bun:test'
import { globSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { CutDisk } from '../support/cut-disk.ts'
import { processIds, readText } from '../support/leftovers.ts'
import { command, patiently, Server } from '../support/server.ts'
import { eventsOf, readEvents, textIn } from '../support/sse.ts'
import { until } from '../support/until.ts'

patiently()

/** Its data directory is on a disk that can be cut off. */
async function serverOn(disk: CutDisk, flags = ['--spares', '0']): Promise<Server> {
  const server = await new Server({ dataDirectory: join(disk.path, 'data'), flags }).start()
  // What jails need is unpacked by the first one.
  const first = await server.sandbox()
  await server.ask('DELETE', `/v1/sandboxes/${first}`)
  return server
}

/** The power goes: all that was not synced is lost, and every process ends. Then the machine is started again. */
async function loseDisk(server: Server, disk: CutDisk): Promise<void> {
  // It begins nothing more.
  process.kill(server.pid, 'SIGSTOP')
  const ids = readdirSync(join(server.dataDirectory, 'sandboxes'))
  disk.cut()
  await server.kill()
  // Of this server alone: on a machine, jails of other servers run beside it.
  const isOf = (pid: number) =>
    ['cmdline', 'mountinfo', 'cgroup'].some(name => {
      const text = readText(`/proc/${pid}/${name}`)
      return ids.some(id => text.includes(id))
    })
  const jailed = () => processIds().filter(pid => pid !== process.pid && isOf(pid))
  for (const pid of jailed()) process.kill(pid, 'SIGKILL')
  const isMounted = () =>
    globSync('/sys/block/loop*/loop/backing_file').some(path => readText(path).includes(`${disk.path}/`))
  for (const stage of stages(disk)) Bun.spawnSync(['umount', '-l', stage])
  await until(() => !isMounted())
  // They are in memory: nothing of them is there after a start of the machine.
  const cgroups = () => globSync('/sys/fs/cgroup/{,*/}threadbox/*').filter(path => ids.some(id => path.includes(id)))
  await until(() => {
    for (const path of cgroups()) Bun.spawnSync(['rmdir', path])
    return cgroups().length === 0
  })
  await disk.restart()
}

const stages = (disk: CutDisk): string[] =>
  readText('/proc/self/mountinfo')
    .split('\n')
    .filter(line => line.includes(disk.path) && !line.includes(` ${disk.path} `))
    .map(line => line.split(' ')[4] ?? '')

test('what was answered outlasts a loss of power a moment later: sandboxes with their files, threads, replies, deletes', async () => {
  await using disk = new CutDisk(1024)
  const server = await serverOn(disk)
  const doomed = await server.sandbox()
  const made = await server.ask('POST', '/v1/sandboxes', {
    agent: 'echo',
    files: { '/home/user/given.txt': 'given' },
    setup: ['echo made > made.txt'],
  })
  const { id: sandboxId } = made.body
  const reply = await readEvents(await server.chat('a reply', { sandboxId }))
  expect(reply.at(-1)?.data).toEqual({ type: 'finish' })
  expect((await server.ask('DELETE', `/v1/sandboxes/${doomed}`)).status).toBe(204)
  const thread = await server.ask('POST', `/v1/sandboxes/${sandboxId}/threads`, { name: 'last' })
  const key = await command(['keys', 'create', '--quiet', '--data-dir', server.dataDirectory])
  const bare = await server.sandbox()
  await loseDisk(server, disk)

  await server.start()
  await using _server = server
  expect((await server.ask('GET', `/v1/sandboxes/${doomed}`)).status).toBe(404)
  expect((await server.exec(sandboxId, 'cat given.txt made.txt')).stdout).toBe('givenmade\n')
  expect((await server.exec(bare, 'echo here')).stdout).toBe('here\n')
  const listed = await server.ask('GET', `/v1/sandboxes/${sandboxId}/threads`, undefined, { key: key.stdout.trim() })
  expect(listed.body[0]).toMatchObject({ id: thread.body.id, name: 'last', status: 'active' })
  expect(listed.body[1]).toMatchObject({ status: 'completed' })
  const { body } = await server.ask('GET', `/v1/sandboxes/${sandboxId}/threads/${listed.body[1].id}`)
  expect(body.messages.map(({ content }: { content: string }) => content)).toEqual(['a reply', 'a reply'])
})

test('a sandbox that took a spare outlasts a loss of power a moment later, and no spare does', async () => {
  await using disk = new CutDisk(1024)
  const server = await serverOn(disk, ['--log-level', 'debug'])
  const ready = () => [...server.stderr.matchAll(/(\S+) stands ready as a spare/g)].map(([, id = '']) => id)
  await until(() => ready().length > 0)
  const files = { '/home/user/given.txt': 'given' }
  const first = await server.ask('POST', '/v1/sandboxes', { agent: 'echo', files })
  const before = ready().length
  await until(() => ready().length > before)
  const second = await server.ask('POST', '/v1/sandboxes', { agent: 'echo' })
  expect(ready()).toContain(second.body.sandboxId)
  await loseDisk(server, disk)

  await server.start()
  await using _server = server
  expect((await server.exec(first.body.id, 'cat given.txt')).stdout).toBe('given')
  expect((await server.exec(second.body.id, 'echo here')).stdout).toBe('here\n')
  const kept = [first.body.sandboxId, second.body.sandboxId]
  await until(() =>
    readdirSync(join(server.dataDirectory, 'sandboxes')).every(id => [...kept, ...ready()].includes(id)),
  )
  const { stdout } = await command(['strays', 'list', '--data-dir', server.dataDirectory])
  expect(stdout).toBe('')
})

test('of a reply under way no more than the last second is lost', async () => {
  await using disk = new CutDisk(1024)
  const server = await serverOn(disk)
  const response = await server.chat('/slow 1000')
  const seen: { atMs: number; chunk: unknown }[] = []
  for await (const { data } of eventsOf(response)) {
    seen.push({ atMs: performance.now(), chunk: data })
    if (seen.length >= 100) break
  }
  const cutAtMs = performance.now()
  await loseDisk(server, disk)

  await server.start()
  await using _server = server
  const sandboxId = response.headers.get('x-sandbox-id')
  const threadId = response.headers.get('x-thread-id')
  const { body } = await server.ask('GET', `/v1/sandboxes/${sandboxId}/threads/${threadId}`)
  expect(body).toMatchObject({ status: 'error', error: 'The server stopped during this reply.' })
  // A second between two syncs, and the sync itself on a busy machine.
  const old = seen.filter(({ atMs }) => atMs < cutAtMs - 2500).map(({ chunk }) => chunk)
  expect(old.length).toBeGreaterThan(20)
  expect(body.messages[1].content).toStartWith(textIn(old))
})

test('with full durability nothing of a reply that a reader saw is lost', async () => {
  await using disk = new CutDisk(1024)
  const server = await serverOn(disk, ['--spares', '0', '--durability', 'full'])
  const response = await server.chat('/slow 1000')
  const seen: { id: string | undefined; data: unknown }[] = []
  for await (const { id, data } of eventsOf(response)) {
    seen.push({ id, data })
    if (seen.length >= 30) break
  }
  await loseDisk(server, disk)

  await server.start()
  await using _server = server
  const runId = response.headers.get('x-run-id')
  const { body } = await server.ask('GET', `/v1/runs/${runId}/events`)
  const stored = new Map(body.events.map(({ seq, chunk }: any) => [`${runId}/${seq}`, chunk]))
  expect(seen).toHaveLength(30)
  // The stream has less of a chunk than the list of events.
  for (const { id, data } of seen) expect(stored.get(id ?? '')).toMatchObject(data as object)
})
