import { afterAll, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { patiently, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

patiently()

const sockets: Socket[] = []
afterAll(() => {
  for (const socket of sockets) socket.destroy()
})

test('connections of one address that show no key are limited, those that showed one and those of trusted proxies are not', async () => {
  await using server = await startServer({
    flags: ['--spares', '0', '--limit', 'address.connections=60', '--trusted-proxies', '127.0.0.3'],
  })
  const open = (localAddress: string) => {
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(server.url).port), localAddress })
    sockets.push(socket)
    let heard = ''
    let isOver = false
    socket.on('data', data => {
      heard += data.toString('latin1')
    })
    socket.on('close', () => {
      isOver = true
    })
    socket.on('error', () => {})
    return { socket, heard: () => heard, isOver: () => isOver }
  }
  type Opened = ReturnType<typeof open>
  /** How many answers of 200 came. */
  const answers = ({ heard }: Opened) => heard().split('HTTP/1.1 200').length - 1
  const ask = ({ socket }: Opened) =>
    socket.write(`GET /v1/me HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${server.key}\r\n\r\n`)

  const known = Array.from({ length: 70 }, () => open('127.0.0.2'))
  known.forEach(ask)
  await until(() => known.every(each => answers(each) === 1))
  const proxied = Array.from({ length: 70 }, () => open('127.0.0.3'))
  const silent = Array.from({ length: 100 }, () => open('127.0.0.2'))
  await until(() => silent.filter(({ isOver }) => isOver()).length >= 40)
  expect(silent.filter(({ isOver }) => isOver()).length).toBeLessThan(100)
  expect(proxied.filter(({ isOver }) => isOver()).length).toBe(0)
  known.forEach(ask)
  await until(() => known.every(each => answers(each) === 2))
})
