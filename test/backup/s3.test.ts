import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, executable, plainEnvironment, startServer, temporaryDirectory, useServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const server = useServer()
const scratch = temporaryDirectory()
const at = (name: string) => join(scratch, name)
const s3rver = join(import.meta.dir, '../../node_modules/s3rver/bin/s3rver.js')
let bucket: Bun.Subprocess<'ignore', 'pipe', 'ignore'>
let env: Record<string, string>
let sandbox = ''

beforeAll(async () => {
  bucket = Bun.spawn([process.execPath, s3rver, '-d', at('s3'), '-s', '-p', '0', '--configure-bucket', 'backups'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let said = ''
  for await (const bytes of bucket.stdout) {
    said += new TextDecoder().decode(bytes)
    if (/listening on \S+:\d+/.test(said)) break
  }
  const [, port] = /listening on \S+:(\d+)/.exec(said) ?? []
  env = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER', AWS_ENDPOINT: `http://127.0.0.1:${port}` }
  sandbox = await server.sandbox()
  // More than one part of an upload.
  await server.exec(sandbox, 'head -c 70000000 /dev/urandom >data')
})

afterAll(async () => {
  bucket.kill()
  await bucket.exited
  rmSync(scratch, { recursive: true, force: true })
})

const place = 's3://backups/threadbox'
const run = (...words: string[]) => command(['backup', ...words], { env })
const create = (...flags: string[]) => run('create', place, '--data-dir', server.dataDirectory, ...flags)
const list = async () => (await run('list', place, '--quiet')).stdout.trim().split('\n').filter(Boolean)

test('an upload to a bucket that is killed leaves no backup there, and the next one is whole, regression', async () => {
  const words = [executable, 'backup', 'create', place, '--data-dir', server.dataDirectory]
  const child = Bun.spawn(words, { env: { ...plainEnvironment, ...env }, stdio: ['ignore', 'ignore', 'ignore'] })
  await until(() => existsSync(at('s3/backups')) && readdirSync(at('s3/backups'), { recursive: true }).some(isLarge))
  child.kill('SIGKILL')
  await child.exited
  expect(await list()).toEqual([])

  const made = await create()
  expect([made.code, made.stderr]).toEqual([0, ''])
  expect(await list()).toHaveLength(1)
})

const isLarge = (name: string | Buffer) => {
  const file = Bun.file(join(at('s3/backups'), name.toString()))
  return file.size > 50_000_000
}

test('a backup of a bucket is restored, and a bucket that cannot be reached is an error in words', async () => {
  const [name = ''] = await list()
  await server.ask('POST', `/v1/sandboxes/${sandbox}/stop`)
  const restored = await run('restore', `${place}/${name}`, '--data-dir', at('new'))
  expect([restored.code, restored.stderr]).toEqual([0, ''])
  const sum = (await server.exec(sandbox, 'sha256sum data')).stdout
  await server.ask('POST', `/v1/sandboxes/${sandbox}/stop`)
  await using other = await startServer({ dataDirectory: at('new') })
  expect((await other.exec(sandbox, 'sha256sum data')).stdout).toBe(sum)
  const wrong = await run('list', 's3://missing/threadbox')
  expect(wrong).toMatchObject({ code: 1, stderr: expect.stringMatching(/^threadbox: .*\n$/) })
  expect(await command(['backup', 'list', place])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('AWS_ACCESS_KEY_ID'),
  })
})

test('backups of a bucket are verified and listed, oldest first, and kept by count', async () => {
  const names = await list()
  for (let made = 0; made < 3; made++) {
    expect((await create('--sandboxes', 'none')).code).toBe(0)
    const more = (await list()).filter(name => !names.includes(name))
    expect(more).toHaveLength(1)
    names.push(...more)
  }
  expect(await list()).toEqual(names)
  expect(await run('verify', `${place}/${names.at(-1)}`, '--temporary', scratch)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('is whole: 0 sandboxes,'),
  })
  const kept = await create('--sandboxes', 'none', '--keep', '2')
  expect(kept).toMatchObject({ code: 0, stdout: expect.stringContaining(`${names[0]} is removed`) })
  expect((await list()).slice(0, -1)).toEqual(names.slice(3))
})

test('a server makes backups by itself, keeps so many, and says when it cannot', async () => {
  const directory = at('by itself')
  await using own = await startServer({
    flags: ['--backup-every', '1s', '--backup-to', directory, '--backup-keep', '2'],
  })
  await until(() => (own.stderr.match(/backup: .*threadbox-backup-/g) ?? []).length >= 3)
  const made = readdirSync(directory).filter(name => name.endsWith('.tar.zst'))
  expect(made.length).toBeGreaterThan(1)
  expect(made.length).toBeLessThanOrEqual(3)
  expect((await run('verify', join(directory, made.at(-1) ?? ''), '--temporary', scratch)).code).toBe(0)
  const rows = await command(['audit', 'list', '--action', 'backup.created', '--json', '--data-dir', own.dataDirectory])
  expect(JSON.parse(rows.stdout).length).toBeGreaterThanOrEqual(3)
  rmSync(directory, { recursive: true })
  writeFileSync(directory, 'no directory')
  await until(() => /backup: .*not for one file/.test(own.stderr))
  expect(readFileSync(directory, 'utf8')).toBe('no directory')
})
