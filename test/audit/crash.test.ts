import { afterAll, expect, test } from 'bun:test'
import { appendFileSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { command, temporaryDirectory, useServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const directory = temporaryDirectory()
afterAll(() => rmSync(directory, { recursive: true, force: true }))
const copy = join(directory, 'audit.jsonl')
const server = useServer({ flags: ['--spares', '0', '--audit-file', copy, '--audit-commands', 'yes'] })
const audit = (...args: string[]) => command(['audit', ...args, '--data-dir', server.dataDirectory])

test('a kill -9 at any moment leaves a chain that is whole, and has the row of every answer', async () => {
  const head = (await audit('head')).stdout.trim()
  const id = await server.sandbox()
  const answered: string[] = []
  for (let round = 0; round < 3; round++) {
    const count = answered.length
    let isKilled = false
    const writing = Array.from({ length: 4 }, async (_, worker) => {
      for (let index = 0; !isKilled; index++) {
        const path = `/home/user/${round}-${worker}-${index}`
        const answer = await server
          .ask('POST', `/v1/sandboxes/${id}/files`, { path, content: '' })
          .catch(() => undefined)
        if (answer?.status === 200) answered.push(path)
        else return
      }
    })
    const keys = command(['keys', 'create', '--quiet', '--data-dir', server.dataDirectory])
    await until(() => answered.length > count + 20)
    await server.kill()
    isKilled = true
    await Promise.all([...writing, keys])
    const { code, stdout, stderr } = await audit('verify', '--head', head)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('the chain is whole')
    await server.start()
  }
  const rows = JSON.parse((await audit('list', '--action', 'file.write', '--limit', '100000', '--json')).stdout)
  const kept = new Set(rows.map((row: any) => row.target.path))
  expect(answered.filter(path => !kept.has(path))).toEqual([])
  expect(JSON.parse((await audit('list', '--action', 'key.created', '--json')).stdout)).toMatchObject([
    { actor: { command: 'keys create', uid: process.getuid?.() } },
    { actor: { command: 'keys create' } },
    { actor: { command: 'keys create' } },
  ])
})

test('the copy goes on after a crash in the middle of a line, and when it is moved away', async () => {
  const list = async (file: string) => (await audit('verify', '--file', file)).stdout
  const rowsOf = () => readFileSync(copy, 'utf8').split('\n').length - 1
  await until(() => readFileSync(copy, 'utf8').includes('key.created'))
  await server.kill()
  appendFileSync(copy, '{"entry":{"action":"exec')
  await server.start()
  await server.exec(await server.sandbox(), 'echo swordfish')
  await until(() => readFileSync(copy, 'utf8').includes('"command":"echo swordfish"'))
  expect(await list(copy)).toContain('the chain is whole')
  const before = rowsOf()
  renameSync(copy, `${copy}.1`)
  await server.ask('POST', '/v1/keys', { name: 'later' })
  await until(() => Bun.file(copy).size > 0)
  expect(rowsOf()).toBeLessThan(before)
  expect(await list(copy)).toContain('the chain is whole')
})

test('a copy that was changed, and a wrong head, end with 1 and say where', async () => {
  const changed = join(directory, 'changed.jsonl')
  await Bun.write(changed, readFileSync(`${copy}.1`, 'utf8').replace('key.created', 'key.revoked'))
  const { code, stderr } = await audit('verify', '--file', changed)
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^row \d+ is not what its hash says/)])
  const head = (await audit('head')).stdout.trim()
  const wrong = await audit(
    'verify',
    '--head',
    head.replace(/.$/, last => (last === '0' ? '1' : '0')),
  )
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('written anew')])
  expect((await audit('verify', '--head', 'x')).code).toBe(2)
  const exported = await audit('export', '--after', '3')
  expect(exported.stdout.split('\n')[0]).toContain('"seq":4')
})
