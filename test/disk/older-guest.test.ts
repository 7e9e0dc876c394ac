import { expect, test } from 'bun:test'
import { globSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { Channel } from '../../src/guest/wire/channel.ts'
import { processesNamed } from '../support/leftovers.ts'
import { patiently, startServer } from '../support/server.ts'

patiently()

test('a jail whose guest is of another version is ended at its first use, and the log says so', async () => {
  // The only guest is the sandbox's.
  const server = await startServer({ flags: ['--spares', '0'] })
  try {
    const id = await server.sandbox()
    const word = `9${Date.now()}`
    await server.exec(id, `echo kept >f; sync; sleep ${word} >/dev/null 2>&1 &`)
    await server.kill()
    const [socket = ''] = globSync(join(server.dataDirectory, 'sandboxes/*/guest.sock'))
    rmSync(socket)
    const other = createServer(connection => new Channel(connection, { side: 'guest' }).sendHello({ protocol: 1 }))
    await new Promise<void>(resolve => other.listen(socket, resolve))
    await server.start()
    expect((await server.exec(id, 'cat f')).stdout).toBe('kept\n')
    expect(processesNamed(word)).toEqual([])
    expect(server.stderr).toMatch(
      /env_\S+: its jail is ended and started anew, what ran in it is gone: .*another version/,
    )
    other.close()
  } finally {
    await server.close()
  }
})
