import { beforeAll, expect, test } from 'bun:test'
import { readdirSync, readlinkSync } from 'node:fs'
import { connect } from 'node:net'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { peakGrowth } from '../support/memory.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
  await app.shell(id, 'mkdir -p /bulk')
})

const url = (name: string) => `/v1/sandboxes/${id}/files?path=${encodeURIComponent(`/bulk/${name}`)}&format=stream`
const shell = (command: string) => app.shell(id, command)
const random = (size: number) => {
  const bytes = Buffer.alloc(size)
  for (let at = 0; at < size; at += 65_536) crypto.getRandomValues(bytes.subarray(at, Math.min(size, at + 65_536)))
  return bytes
}
const sha256 = (bytes: Uint8Array) => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
const streamOf = (bytes: Uint8Array) => new Blob([bytes]).stream()

/** What this process has open of a sandbox's files, by the names that the sandbox has for them. */
const held = () =>
  readdirSync('/proc/self/fd').filter(number => {
    try {
      return /\/(bulk\/|\.threadbox-draft-)/.test(readlinkSync(`/proc/self/fd/${number}`))
    } catch {
      return false
    }
  }).length

/** A download of which some has come, and no more is taken. */
async function begun(name: string) {
  const response = await app.request('GET', url(name))
  const reader = response.body!.getReader()
  const first = (await reader.read()).value!
  return { reader, first }
}

const KIB = 1024
test.each([
  0,
  1,
  64 * KIB - 1,
  64 * KIB,
  64 * KIB + 1,
  256 * KIB,
  256 * KIB + 1,
  512 * KIB,
  5 * KIB * KIB,
  5 * KIB * KIB + 1,
])('%d bytes go up as a stream and come down as they were', async size => {
  const bytes = random(size)
  const { body } = await app.ask('POST', url(`size-${size}`), streamOf(bytes))
  expect(body).toEqual({ files: [{ path: `/bulk/size-${size}`, size }] })
  expect(await shell(`sha256sum < /bulk/size-${size}`)).toBe(`${sha256(bytes)}  -\n`)
  const down = await (await app.request('GET', url(`size-${size}`))).bytes()
  expect(down.byteLength).toBe(size)
  expect(sha256(down)).toBe(sha256(bytes))
  await until(() => held() === 0, 'the server has nothing of it open')
})

test('the server reads a large file itself, and closes it when its client goes away', async () => {
  await shell('truncate -s 1G /bulk/left')
  const { reader } = await begun('left')
  expect(held()).toBe(1)
  await reader.cancel()
  await until(() => held() === 0, 'the server has closed it')
  const holders = 'ls -l /proc/[0-9]*/fd 2>/dev/null | grep -c /bulk/left'
  await until(async () => (await app.exec(id, holders)).stdout === '0\n', 'the guest has closed it')
})

test('a file that is cut off while it is read ends early', async () => {
  await shell('head -c 200000000 /dev/zero >/bulk/cut')
  const { reader, first } = await begun('cut')
  await shell('truncate -s 1000 /bulk/cut')
  let count = first.byteLength
  for (let next = await reader.read(); !next.done; next = await reader.read()) count += next.value.byteLength
  expect(count).toBeLessThan(200_000_000)
  await until(() => held() === 0)
})

test('a file that grows while it is read is read to its end', async () => {
  await shell('head -c 20000000 /dev/zero >/bulk/grown')
  const { reader, first } = await begun('grown')
  await shell('head -c 1000 /dev/zero >>/bulk/grown')
  let count = first.byteLength
  for (let next = await reader.read(); !next.done; next = await reader.read()) count += next.value.byteLength
  expect(count).toBe(20_001_000)
})

test('a file that is replaced while it is read stays the old one for its reader', async () => {
  await shell('head -c 20000000 /dev/zero >/bulk/replaced')
  const { reader, first } = await begun('replaced')
  await app.ask('POST', url('replaced'), streamOf(Buffer.alloc(1_000_000, 'x')))
  const pieces = [first]
  for (let next = await reader.read(); !next.done; next = await reader.read()) pieces.push(next.value)
  expect(sha256(Buffer.concat(pieces))).toBe(sha256(Buffer.alloc(20_000_000)))
  expect(await shell('wc -c < /bulk/replaced')).toBe('1000000\n')
})

test('a program that was just uploaded can be run at once', async () => {
  const program = Buffer.alloc(400_000, '#')
  program.write('#!/bin/sh\necho ran; exit\n')
  for (let round = 0; round < 10; round++) {
    await app.ask('POST', url('program'), streamOf(program))
    expect(await shell('chmod 755 /bulk/program; /bulk/program')).toBe('ran\n')
  }
})

test('files that are not on the disk of the sandbox go both ways too', async () => {
  const bytes = random(700_000)
  const path = `/v1/sandboxes/${id}/files?path=/dev/shm/bulk&format=stream`
  await app.ask('POST', path, streamOf(bytes))
  expect(sha256(await (await app.request('GET', path)).bytes())).toBe(sha256(bytes))
  const kernel = `/v1/sandboxes/${id}/files?path=/proc/cpuinfo&format=stream`
  expect(await (await app.request('GET', kernel)).text()).toContain('processor')
})

test('a body that breaks in the middle changes nothing and leaves nothing open', async () => {
  await shell('echo whole >/bulk/broken')
  let pieces = 0
  const broken = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (pieces++ < 20) controller.enqueue(new Uint8Array(100_000))
      else controller.error(new Error('gone'))
    },
  })
  await app.ask('POST', url('broken'), broken).catch(() => {})
  await until(
    async () => held() === 0 && (await shell('cat /bulk/broken; ls -A /bulk | grep -c draft; :')) === 'whole\n0\n',
  )
})

test('a sandbox that is deleted in the middle of a download and an upload leaves nothing open', async () => {
  const other = await app.sandbox()
  await app.shell(other, 'mkdir -p /bulk; head -c 300000000 /dev/zero >/bulk/gone')
  const at = (name: string) => `/v1/sandboxes/${other}/files?path=/bulk/${name}&format=stream`
  const response = await app.request('GET', at('gone'))
  const reader = response.body!.getReader()
  await reader.read()
  const stop = Promise.withResolvers<void>()
  let sent = 0
  const endless = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (sent++ > 20) await stop.promise
      controller.enqueue(new Uint8Array(100_000))
    },
  })
  const uploaded = app.ask('POST', at('up'), endless).then(
    ({ status }) => status,
    () => 0,
  )
  await until(() => held() === 2, 'both are under way')
  await app.ask('DELETE', `/v1/sandboxes/${other}`)
  await until(() => held() === 0, 'both are closed')
  stop.resolve()
  expect(await uploaded).not.toBe(200)
  await reader.cancel().catch(() => {})
})

test('an upload that fills the disk is refused, and its place is free again', async () => {
  await shell('echo whole >/bulk/full; fallocate -l $(($(df --output=avail -B1 / | tail -1) - 30000000)) /bulk/filler')
  const answer = await app.ask('POST', url('full'), streamOf(Buffer.alloc(60_000_000)))
  expect(codeOf(answer)).toEndWith('disk_full')
  expect(await shell('cat /bulk/full; ls -A /bulk | grep -c draft; :')).toBe('whole\n0\n')
  await app.ask('POST', url('full'), streamOf(Buffer.alloc(15_000_000)))
  expect(await shell('wc -c < /bulk/full; rm /bulk/filler')).toBe('15000000\n')
})

test('an upload takes little memory, also under a host of one letter: regression', async () => {
  await using server = await startServer({ flags: ['--spares', '0'] })
  const { body } = await server.ask('POST', '/v1/sandboxes', { agent: 'echo' })
  const path = `/v1/sandboxes/${body.id}/files?path=/home/user/big&format=stream`
  const { hostname, port } = new URL(server.url)
  const size = 300_000_000
  const upload = async () => {
    const socket = connect(Number(port), hostname)
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${server.key}\r\ncontent-length: ${size}\r\n\r\n`,
    )
    const answer = Promise.withResolvers<string>()
    socket.on('data', bytes => answer.resolve(bytes.toString()))
    for (let sent = 0; sent < size; sent += 1_000_000) {
      await new Promise<void>(resolve => socket.write(Buffer.alloc(1_000_000), () => resolve()))
    }
    expect(await answer.promise).toContain(' 200 ')
    socket.destroy()
  }
  expect(await peakGrowth(server.pid, upload)).toBeLessThan(size / 2)
})
