import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { command, startServer, temporaryDirectory, useServer } from '../support/server.ts'
import { until } from '../support/until.ts'

// A killed server's spare is swept by the next start, which this may stop before.
const server = useServer({ flags: ['--spares', '0'] })

const filesOf = (name: string): string[] => {
  const directory = join(server.dataDirectory, name)
  return existsSync(directory) ? readdirSync(directory).sort() : []
}

/** The program of the server that freezes, while it does. */
const isFreezing = (): boolean =>
  readdirSync('/proc').some(pid => {
    if (!/^\d+$/.test(pid)) return false
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      return line.includes('threadbox-freeze') && line.includes(server.dataDirectory)
    } catch {
      return false
    }
  })

test('kill -9 in the middle of a snapshot leaves nothing of it, and the sandbox goes on', async () => {
  const id = await server.sandbox()
  await server.exec(id, 'head -c 200000000 /dev/zero | tr "\\0" a > big; echo kept > file')
  const taking = server.ask('POST', `/v1/sandboxes/${id}/snapshots`, { name: 'half' }).catch(() => undefined)
  await until(isFreezing)
  await server.kill()
  await taking
  await server.start()
  expect(await server.exec(id, 'echo more >> file; cat file')).toMatchObject({ stdout: 'kept\nmore\n' })
  expect((await server.ask('GET', '/v1/snapshots')).body.snapshots).toEqual([])
  await until(() => !isFreezing())
  await until(() => filesOf('snapshots').length === 0)
  // The name is free again.
  expect((await server.ask('POST', `/v1/sandboxes/${id}/snapshots`, { name: 'half' })).status).toBe(201)
  await server.ask('DELETE', '/v1/snapshots/half')
  await server.ask('DELETE', `/v1/sandboxes/${id}`)
})

test('kill -9 in the middle of a fork leaves whole sandboxes alone, and nothing beside them', async () => {
  const id = await server.sandbox()
  await server.exec(id, 'echo shared > file')
  const forking = server.ask('POST', `/v1/sandboxes/${id}/fork`, { count: 12 }).catch(() => undefined)
  await until(() => filesOf('sandboxes').length > 3)
  await server.kill()
  await forking
  await server.start()
  const { sandboxes } = (await server.ask('GET', '/v1/sandboxes')).body
  await until(() => filesOf('sandboxes').length === sandboxes.length)
  for (const each of sandboxes) expect((await server.exec(each.id, 'cat file')).stdout).toBe('shared\n')
  for (const each of sandboxes) expect((await server.ask('DELETE', `/v1/sandboxes/${each.id}`)).status).toBe(204)
  await until(() => filesOf('snapshots').length === 0)
})

test('a snapshot, and what forks share, are in a backup and are restored from it', async () => {
  const scratch = temporaryDirectory()
  try {
    const id = await server.sandbox({ envs: { COLOUR: 'blue' } })
    await server.exec(id, 'echo first > file; echo x > gone')
    const { forks } = (await server.ask('POST', `/v1/sandboxes/${id}/fork`, {})).body
    const fork = forks[0].sandbox.id
    await server.exec(fork, 'echo fork >> file; rm gone')
    const { body: kept } = await server.ask('POST', `/v1/sandboxes/${fork}/snapshots`, { name: 'kept' })
    await server.ask('DELETE', `/v1/sandboxes/${id}`)
    const file = join(scratch, 'one.tar.zst')
    const made = await command(['backup', 'create', file, '--data-dir', server.dataDirectory, '--json'])
    expect(made.stderr).toBe('')
    expect(JSON.parse(made.stdout).snapshots).toContainEqual({ id: kept.id, backend: 'nsjail', at: expect.any(String) })
    await server.ask('POST', `/v1/sandboxes/${fork}/stop`)
    expect((await command(['backup', 'verify', file, '--temporary', scratch])).code).toBe(0)
    const dataDirectory = join(scratch, 'data')
    expect(await command(['backup', 'restore', file, '--data-dir', dataDirectory])).toMatchObject({
      code: 0,
      stderr: '',
    })
    await using again = await startServer({ dataDirectory, flags: ['--spares', '0'] })
    const look = 'cat file; ls; echo $COLOUR'
    expect((await again.exec(fork, look)).stdout).toBe('first\nfork\nfile\nblue\n')
    await again.ask('DELETE', `/v1/sandboxes/${fork}`)
    const copy = await again.sandbox({ agent: undefined, snapshot: 'kept' })
    expect((await again.exec(copy, look)).stdout).toBe('first\nfork\nfile\nblue\n')
    await again.ask('DELETE', `/v1/sandboxes/${copy}`)
    await again.ask('DELETE', '/v1/snapshots/kept')
    expect(readdirSync(join(dataDirectory, 'snapshots'))).toEqual([])
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
})
