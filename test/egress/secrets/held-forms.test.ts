import { afterEach, expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect } from 'node:http2'
import { all } from '../support.ts'
import { bind, closeAll, openHost, openHost2, openSecretBench, PLACEHOLDER, SECRET } from './host.ts'

/** Forms that a program begins while a secret is bound, and ends later. */

afterEach(closeAll)

const FORM = 'application/x-www-form-urlencoded'

/** Bindings whose first use tells. */
function bindForForms(host: string) {
  const begun = Promise.withResolvers<void>()
  const value = () => {
    begun.resolve()
    return SECRET
  }
  return { begun: begun.promise, bound: [bind(host, { as: { env: 'TOKEN' }, placeholder: PLACEHOLDER, value })] }
}

test('a form that a program holds back until the secret is unbound does not get it regression', async () => {
  const [bench, own] = [await openSecretBench(), await openHost()]
  const { begun, bound } = bindForForms(own.authority)
  bench.bound = bound
  const program = await bench.open(own.authority)
  const body = `t=${PLACEHOLDER}`
  const head = `Host: ${own.authority}\r\nContent-Type: ${FORM}\r\nX-Token: ${PLACEHOLDER}\r\nConnection: close`
  program.write(`POST / HTTP/1.1\r\n${head}\r\nContent-Length: ${body.length}\r\n\r\nt=`)
  await begun
  bench.bound = []
  program.write(PLACEHOLDER)
  expect(await all(program)).toContain('ok')
  expect(own.requests).toMatchObject([{ headers: { 'x-token': PLACEHOLDER }, body }])
  expect(bench.uses).toEqual([])
})

test('a form over HTTP/2 that is held back until the secret is removed is refused regression', async () => {
  const bodies: string[] = []
  const [bench, own] = [
    await openSecretBench(),
    await openHost2(async stream => {
      bodies.push(await new Response(stream as any).text())
      stream.respond({ ':status': 200 })
      stream.end('ok')
    }),
  ]
  const { begun, bound } = bindForForms(own.authority)
  bench.bound = bound
  const secure = await bench.open(own.authority, { protocols: ['h2'] })
  const session = connect(`https://${own.authority}`, { createConnection: () => secure })
  const stream = session.request({ ':method': 'POST', ':path': '/', 'content-type': FORM })
  stream.write('t=')
  await begun
  const gone = () => {
    throw new Error('removed')
  }
  bench.bound = bound.map(each => ({ ...each, value: gone }))
  stream.end(PLACEHOLDER)
  const [headers] = (await once(stream, 'response')) as any[]
  expect([headers[':status'], bodies]).toEqual([502, []])
  session.destroy()
})
