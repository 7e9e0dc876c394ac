import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect as connectTo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDockerBackend } from '../../plugins/docker/index.ts'
import { newId } from '../../src/db/id.ts'
import { runCommand } from '../../src/environment/run-command.ts'
import type { Environment } from '../../src/plugin-api/index.ts'
import { importDebian } from '../support/docker-images.ts'
import { useDockerd } from '../support/dockerd.ts'
import { openTestSandbox, type SandboxInit } from '../support/sandbox.ts'
import { until } from '../support/until.ts'
import { describeBackend } from './contract.ts'
import { describeDirect } from './direct.ts'
import { describeNames } from './names.ts'

setDefaultTimeout(60_000)

const dockerd = useDockerd()
// Debian may have to be brought first.
beforeAll(() => importDebian(dockerd.api), 300_000)

const dataDirectory = mkdtempSync(join(tmpdir(), 'threadbox-contract-'))
afterAll(() => rmSync(dataDirectory, { recursive: true, force: true }))

describeBackend('docker', async serveProxy =>
  createDockerBackend({
    dataDirectory,
    image: 'debian',
    variables: { DOCKER_HOST: dockerd.host },
    executable: join(import.meta.dir, '../../dist/threadbox'),
    serveProxy,
    log: line => console.error(line),
  }),
)

const open = (init: SandboxInit = {}) =>
  openTestSandbox({
    ...init,
    createBackend: options =>
      createDockerBackend({ ...options, image: 'debian', variables: { DOCKER_HOST: dockerd.host } }),
  })
describeDirect('connections on docker', open)
describeNames('names on docker', open)

describe('the network of a container', () => {
  const directory = mkdtempSync(join(tmpdir(), 'threadbox-network-'))
  const name = newId('env')
  const backendAt = (host: string, dataDirectory = directory) =>
    createDockerBackend({
      dataDirectory,
      image: 'debian',
      variables: { DOCKER_HOST: host },
      executable: join(import.meta.dir, '../../dist/threadbox'),
      serveDirect: (_id, socket, { address, port }) => void socket.on('error', () => {}).end(`${address} ${port}`),
      answerName: async () => undefined,
      log: line => console.error(line),
    })
  const program = `
import socket, errno
try: print(socket.create_connection(("203.0.113.5", 5432), 20).recv(100).decode())
except OSError as e: print(errno.errorcode[e.errno])`
  const connect = async (environment: Environment) =>
    (await runCommand(environment, { command: `python3 -c '${program}'`, timeoutMs: 30_000 })).stdout.trim()
  const networkOf = ({ confinement }: Environment) => confinement.find(line => line.startsWith('network: '))
  afterAll(() => rmSync(directory, { recursive: true }))

  test('is redirected over a restart of the server, at its next start, and again when that was undone', async () => {
    const first = backendAt(dockerd.host)
    expect(await connect(await first.create({ id: name, limits: {} }))).toBe('203.0.113.5 5432')
    await first.close()
    const second = backendAt(dockerd.host)
    const found = (await second.open(name))!
    expect([await connect(found), networkOf(found)]).toEqual([
      '203.0.113.5 5432',
      'network: loopback; TCP to anywhere leads to the server, which decides, and so does its proxy',
    ])
    await found.pause?.()
    expect(await connect(found)).toBe('203.0.113.5 5432')
    await dockerd.api.ask('POST', `/containers/threadbox-${name}/restart?t=0`)
    await until(async () => (await connect(found).catch(() => '')) === '203.0.113.5 5432')
    await second.close()
  })

  test('is as it was, with the proxy alone, where the engine does not let it be redirected, and says why', async () => {
    const refusing = createServer({ allowHalfOpen: true }, client => {
      client
        .on('error', () => {})
        .once('data', head => {
          if (/^POST \S+\/containers\/create\?name=\S+-network /.test(head.toString('latin1')))
            return void client.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 26\r\n\r\n{"message":"not for you"}\n')
          const engine = connectTo({ path: dockerd.socket, allowHalfOpen: true })
          engine.on('error', () => client.destroy()).write(head)
          client.pipe(engine).pipe(client)
        })
    })
    const path = join(directory, 'refusing.sock')
    await new Promise<void>(resolve => refusing.listen(path, resolve))
    const backend = backendAt(`unix://${path}`)
    const environment = (await backend.open(name))!
    await environment.pause?.()
    expect(await connect(environment)).toBe('ENETUNREACH')
    expect(networkOf(environment)).toBe(
      "network: loopback, and the server's proxy; TCP leads nowhere else: the engine does not redirect connections: not for you",
    )
    expect((await backend.check()).find(check => check.name === 'transparent network')).toMatchObject({
      ok: false,
      required: false,
      detail: expect.stringContaining('not for you'),
      remedy: expect.any(String),
    })
    await environment.destroy()
    await backend.close()
    refusing.close()
    expect((await dockerd.api.containers()).filter(({ Names }) => String(Names).includes(name))).toEqual([])
  })
})
