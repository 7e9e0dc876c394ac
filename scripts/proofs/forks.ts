// One sandbox with files of some size, forked in one request; each fork writes, and sees nothing of what another has written.
// bun scripts/proofs/forks.ts [FORKS=100] [MB=1024] [IMAGE] (as root; builds first: scripts/build). With an image, in containers of
// the engine that DOCKER_HOST names.
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const [forks, mb] = [Number(process.argv[2] ?? 100), Number(process.argv[3] ?? 1024)]
const image = process.argv[4]
const executable = join(import.meta.dir, '../../dist/threadbox')
const scratch = mkdtempSync('/var/tmp/threadbox-proof-')
const key = `proof-${crypto.randomUUID()}`

const backend = image === undefined ? [] : ['--backend', 'docker', '--docker-image', image]
const engine = process.env.DOCKER_HOST === undefined ? {} : { DOCKER_HOST: process.env.DOCKER_HOST }
const server = Bun.spawn([executable, 'serve', '--data-dir', join(scratch, 'data'), '--port', '0', ...backend], {
  env: { PATH: process.env.PATH ?? '', HOME: '/root', THREADBOX_API_KEY: key, ...engine },
  stdio: ['ignore', 'pipe', 'inherit'],
})

async function listening(): Promise<string> {
  let said = ''
  for await (const bytes of server.stdout) {
    said += new TextDecoder().decode(bytes)
    const [, at] = /^threadbox listening on (\S+)\n/m.exec(said) ?? []
    if (at) return at
  }
  throw new Error(`the server did not start: ${said}`)
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
  return text ? JSON.parse(text) : undefined
}

const exec = async (id: string, command: string): Promise<string> =>
  (await ask('POST', `/v1/sandboxes/${id}/exec`, { command, timeoutMs: 120_000 })).stdout

const timed = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
  const begun = performance.now()
  const result = await work()
  console.log(`${what}: ${Math.round(performance.now() - begun)} ms`)
  return result
}

const url = await listening()
try {
  const { id } = await ask('POST', '/v1/sandboxes', { agent: 'echo' })
  await exec(id, `head -c ${mb}M /dev/urandom > big; echo shared > file; sync`)
  const one = await timed('a snapshot', () => ask('POST', `/v1/sandboxes/${id}/snapshots`, { name: 'one' }))
  console.log(`  frozen ${one.frozenMs} ms, method ${one.method}, ${Math.round(one.diskBytes / 1e6)} MB`)
  const { id: first } = await timed('a sandbox of it', () => ask('POST', '/v1/sandboxes', { snapshot: 'one' }))
  await timed('another one', () => ask('POST', '/v1/sandboxes', { snapshot: 'one' }))
  await timed('its first command', () => exec(first, 'true'))
  const made = await timed(`${forks} forks`, () => ask('POST', `/v1/sandboxes/${id}/fork`, { count: forks }))
  console.log(`  frozen ${made.frozenMs} ms, method ${made.method}`)
  const ids: string[] = made.forks.map((fork: Answer) => fork.sandbox?.id).filter(Boolean)
  if (ids.length < forks) throw new Error(JSON.stringify(made.forks.find((fork: Answer) => fork.error)))
  const sum = await exec(id, 'sha256sum < big')
  await timed('each writes', () =>
    Promise.all(ids.map((each, n) => exec(each, `echo ${n} >> file; echo ${n} > own; rm -f gone`))),
  )
  const wrong = (
    await Promise.all(
      ids.map(async (each, n) => (await exec(each, 'cat file own; ls')) !== `shared\n${n}\n${n}\nbig\nfile\nown\n`),
    )
  ).filter(Boolean).length
  const sums = await Promise.all(ids.slice(0, 3).map(each => exec(each, 'sha256sum < big')))
  console.log(
    `${wrong} forks of ${ids.length} see what they should not; big is ${sums.every(each => each === sum) ? 'the same' : 'ANOTHER'} in three`,
  )
  console.log(`the first: ${JSON.stringify(await exec(id, 'cat file; ls'))}`)
  await timed('all are deleted', () => Promise.all(ids.map(each => ask('DELETE', `/v1/sandboxes/${each}`))))
} finally {
  for (const { id } of (await ask('GET', '/v1/sandboxes?limit=999')).sandboxes)
    await ask('DELETE', `/v1/sandboxes/${id}`)
  server.kill()
  await server.exited
  rmSync(scratch, { recursive: true, force: true })
}
