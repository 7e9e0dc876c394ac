import { readdirSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { createCarrier } from '../../src/egress/carrier/carrier.ts'
import { exhaustDescriptors } from '../support/descriptor-limit.ts'

/** Tries to carry two connections with so many descriptors free, by a thread that runs and one that does not, then with enough. */
const free = Number(process.argv[2])
const [[client, inner], [outer, server]] = [await pair(), await pair()]
const [running, resting] = [createCarrier(), createCarrier()]
const [[program, near], [far, answering]] = [await pair(), await pair()]
running.carry(near, far)
// Its thread has all that it opens once it has carried something.
await say(program, answering)
const before = readdirSync('/proc/self/fd').length
const said: string[] = [running, resting].map(carrier => {
  // The thread that runs needs two.
  const restore = exhaustDescriptors(carrier === running ? Math.min(free, 1) : free)
  const carried = carrier.carry(inner, outer)
  restore()
  return carried ? 'carried' : 'refused'
})
said.push(readdirSync('/proc/self/fd').length > before ? 'some kept' : 'none kept')
running.carry(inner, outer)
said.push(await say(client, server))
console.log(said.join(', '))
process.exit(0)

function say(from: Socket, to: Socket): Promise<string> {
  from.write('hello')
  return new Promise(resolve => to.once('data', data => resolve(String(data))))
}

/** Two ends of one connection. */
async function pair(): Promise<[Socket, Socket]> {
  const { promise, resolve } = Promise.withResolvers<Socket>()
  const listener = createServer({ allowHalfOpen: true }, resolve)
  await new Promise<void>(listening => listener.listen(0, '127.0.0.1', listening))
  const near = connect({ port: (listener.address() as { port: number }).port, host: '127.0.0.1', allowHalfOpen: true })
  const far = await promise
  listener.close()
  return [near, far]
}
