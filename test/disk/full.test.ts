import { afterEach, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { command, patiently, startServer } from '../support/server.ts'
import { useSmallDisk } from '../support/small-disk.ts'
import { until } from '../support/until.ts'

patiently()

const RESERVE_MB = 64

/** Disk images need root. */
if (process.getuid?.() === 0) {
  const disk = useSmallDisk(768)
  const start = (name: string, flags: string[] = []) =>
    startServer({
      dataDirectory: join(disk.directory, name),
      flags: ['--disk-mb', '4096', '--reserve-mb', String(RESERVE_MB), ...flags],
    })
  afterEach(() => disk.empty())

  test('below the reserve what grows is 507, what is there can be read and deleted, and it heals by itself', async () => {
    await using server = await start('low')
    const [kept, other] = [await server.sandbox(), await server.sandbox()]
    const files = `/v1/sandboxes/${kept}/files`
    await server.ask('POST', files, { path: '/home/user/f', content: 'kept' })
    expect((await server.ask('GET', '/health')).body.disk).toBe('enough')
    // With the ballast more than half of the reserve, without it too.
    disk.fill(RESERVE_MB * 0.6)

    const refused = [
      await server.ask('POST', '/v1/sandboxes', { agent: 'echo' }),
      await server.ask('POST', files, { path: '/home/user/g', content: 'x' }),
      await server.ask('POST', `${files}/mkdir`, { path: '/home/user/d' }),
      await server.ask('POST', `/v1/sandboxes/${kept}/git/clone`, { url: 'https://example.com/x.git' }),
      await server.ask('POST', '/v1/chat/echo', {
        messages: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
      }),
    ]
    for (const { status, body } of refused) {
      expect([status, body.error.code]).toEqual([507, 'disk_full'])
      expect(body.message).toMatch(/^The server's disk is full: \d+ MB are free and 64 MB are kept free\./)
    }
    expect((await server.ask('GET', '/health')).body.disk).toBe('low')
    expect((await server.exec(kept, 'cat f')).stdout).toBe('kept')
    const { stdout } = await command(['doctor', '--data-dir', server.dataDirectory, '--reserve-mb', String(RESERVE_MB)])
    expect(stdout).toMatch(/^missing +disk space: \d+ MB are free, 64 MB are kept free\n +remedy: /m)
    expect((await server.ask('DELETE', `/v1/sandboxes/${other}`)).status).toBe(204)

    disk.empty()
    await server.sandbox()
    expect((await server.ask('POST', files, { path: '/home/user/g', content: 'x' })).status).toBe(200)
  })

  test('a snapshot that the disk has no room for is 507 and leaves nothing, and one can be deleted to make room', async () => {
    await using server = await start('snapshots')
    const id = await server.sandbox()
    await server.exec(id, 'head -c 100000000 /dev/urandom >big; echo kept >f; sync')
    const take = (name: string) => server.ask('POST', `/v1/sandboxes/${id}/snapshots`, { name })
    expect((await take('one')).status).toBe(201)
    disk.fill(RESERVE_MB + 50)
    const answers = [await take('two'), await server.ask('POST', `/v1/sandboxes/${id}/fork`, {})]
    for (const { status, body } of answers) expect([status, body.error.code]).toEqual([507, 'disk_full'])
    expect(readdirSync(join(server.dataDirectory, 'snapshots'))).toHaveLength(1)
    expect((await server.exec(id, 'echo more >>f; cat f')).stdout).toBe('kept\nmore\n')
    disk.fill(RESERVE_MB * 0.6)
    expect((await server.ask('POST', '/v1/sandboxes', { snapshot: 'one' })).body.error.code).toBe('disk_full')
    expect((await server.ask('DELETE', '/v1/snapshots/one')).status).toBe(204)
    expect(readdirSync(join(server.dataDirectory, 'snapshots'))).toEqual([])
    disk.empty()
    expect((await take('two')).status).toBe(201)
  })

  test('on a full disk sandboxes are stopped, say so, can be deleted, and go on when there is room', async () => {
    await using server = await start('full')
    const [kept, other] = [await server.sandbox(), await server.sandbox()]
    await server.exec(kept, 'echo kept >f; sync')
    await until(() => existsSync(join(server.dataDirectory, 'ballast')))
    const waiting = server.ask('POST', `/v1/sandboxes/${kept}/exec`, { command: 'sleep 1000' })
    await until(async () => (await server.exec(kept, 'pgrep sleep')).exitCode === 0)
    disk.fill(0)

    const { status, body } = await waiting
    expect([status, body.error.code]).toEqual([507, 'disk_full'])
    await until(async () => {
      const { body: list } = await server.ask('GET', '/v1/sandboxes')
      return list.sandboxes.every((each: { status: string }) => each.status === 'error')
    })
    const shown = (await server.ask('GET', `/v1/sandboxes/${kept}`)).body
    expect([shown.status, shown.error]).toEqual(['error', expect.stringContaining("The server's disk is full")])
    const again = await server.ask('POST', `/v1/sandboxes/${kept}/exec`, { command: 'true' })
    expect([again.status, again.body.error.code]).toEqual([507, 'disk_full'])
    expect((await server.ask('DELETE', `/v1/sandboxes/${other}`)).status).toBe(204)
    await server.kill()
    await server.start()
    expect((await server.ask('GET', `/v1/sandboxes/${kept}`)).status).toBe(200)

    disk.empty()
    expect((await server.exec(kept, 'cat f; echo more >>f; cat f')).stdout).toBe('kept\nkept\nmore\n')
    const healed = (await server.ask('GET', `/v1/sandboxes/${kept}`)).body
    expect([healed.status, healed.error]).toEqual(['active', null])
  })

  test('a sandbox that fills the disk is stopped before its file system breaks, and the others go on', async () => {
    await using server = await start('filler')
    const [filler, other] = [await server.sandbox(), await server.sandbox()]
    await server.exec(other, 'echo kept >f; sync')
    disk.fill(RESERVE_MB * 2.5)
    const { status, body } = await server.ask('POST', `/v1/sandboxes/${filler}/exec`, {
      command: 'echo before >f; sync; while head -c 1M /dev/zero >>big; do sync big; done; sleep 1000',
    })
    expect([status, body.error.code]).toEqual([507, 'disk_full'])
    expect(disk.freeMb).toBeGreaterThan(1)
    expect((await server.exec(other, 'cat f')).stdout).toBe('kept\n')
    expect((await server.exec(filler, 'rm big; cat f')).stdout).toBe('before\n')
    await until(async () => (await server.ask('GET', '/health')).body.disk === 'enough')
    expect((await server.exec(filler, 'touch new && echo ok')).stdout).toBe('ok\n')
    expect(server.stderr).not.toContain('mended')
  })

  test('a file system that broke on a full disk is mended by its next use', async () => {
    await using server = await start('broken', ['--reserve-mb', '0'])
    const broken = await server.sandbox()
    await server.exec(broken, 'echo kept >f; sync')
    disk.fill(0)
    await server.exec(broken, 'mkdir d; for i in $(seq 4000); do echo $i >d/n$i; done; sync; touch new')
    // The kernel may have come through with what it had; it will not at the next.
    await until(async () => {
      await server.ask('POST', `/v1/sandboxes/${broken}/exec`, {
        command: 'mkdir -p e; seq 99999 >e/$RANDOM; sync; touch new',
      })
      return server.stderr.includes('Its disk has met an error')
    })
    const made = await server.ask('POST', '/v1/sandboxes', { agent: 'echo' })
    expect([made.status, made.body.error.code]).toEqual([507, 'disk_full'])
    disk.empty()
    // It may have been started again and broken again meanwhile: that is noticed within seconds.
    await until(async () => {
      const path = `/v1/sandboxes/${broken}/exec`
      return (await server.ask('POST', path, { command: 'touch works && cat f' })).body.stdout === 'kept\n'
    })
    const { status, error } = (await server.ask('GET', `/v1/sandboxes/${broken}`)).body
    expect([status, error]).toEqual(['active', null])
    expect(server.stderr).toContain('its disk was not left in order and is mended')
  })
}
