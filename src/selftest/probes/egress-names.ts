import type { Probe } from '../probe.ts'
import { runInside } from '../run-inside.ts'
import { caughtBy, withProgram } from './bait-probe.ts'

/** No DNS server knows this name. */
const nameOf = (label: string) => `${label}.selftest.invalid`

/** The probes with names, and with requests whose parts contradict each other. */
export const namesAndRequests: readonly Probe[] = [
  {
    ...withProgram({
      id: 'egress/private-names',
      tried: 'asks for names that stand for addresses of this machine',
      meaning: 'Whoever has a domain could lead a sandbox to servers that this machine keeps for itself.',
    }),
    async run(subject) {
      const { bait } = subject
      const names = [nameOf('private'), nameOf('private-mixed')]
      using _first = subject.answerName(names[0] ?? '', () => bait.addresses)
      using _second = subject.answerName(names[1] ?? '', () => ['127.0.0.1', '10.255.255.254', '::1'])
      return await caughtBy(subject, 'egress/private-names', 'egress/names', names)
    },
  },
  {
    ...withProgram({
      id: 'egress/rebinding',
      tried: 'asks for a name that is public at first, and then an address of this machine',
      meaning: 'Whoever has a domain could lead a sandbox past the check of its address.',
    }),
    async run(subject) {
      let asked = 0
      // The first answer goes to a look-up that makes no connection.
      using _name = subject.answerName(nameOf('rebinding'), () => (asked++ === 0 ? ['192.0.43.8'] : ['127.0.0.1']))
      const found = await caughtBy(subject, 'egress/rebinding', 'egress/rebinding', [nameOf('rebinding')])
      if (asked === 1) throw new Error('the name was looked up once alone')
      return found
    },
  },
  {
    ...withProgram({
      id: 'egress/unlisted-names',
      tried: 'looks up names that no rule of the sandbox allows, for records of every kind',
      meaning: 'A process inside could send data out in the names that it asks for.',
    }),
    async run(subject) {
      const name = nameOf('c2VjcmV0.tunnel')
      let asked = 0
      using _name = subject.answerName(name, () => {
        asked++
        return []
      })
      const environment = await subject.create({ networkAllowOut: [nameOf('allowed')] })
      try {
        const found = await runInside(subject, 'egress/questions', { environment, words: [name] })
        return asked === 0 ? found : [...found, `the server has asked its resolver for the name: ${asked}`]
      } finally {
        await subject.remove(environment)
      }
    },
  },
  {
    ...withProgram({
      id: 'egress/another-sandbox',
      tried: 'says to the proxy that it is another sandbox, whose rules allow more',
      meaning: 'One sandbox could use the rules, the network and the secrets of another.',
    }),
    async run(subject) {
      const name = nameOf('theirs')
      let asked = 0
      using _name = subject.answerName(name, () => {
        asked++
        return []
      })
      const environment = await subject.create({ networkAllowOut: [nameOf('allowed')] })
      const { id } = subject.other
      const pass = Buffer.from(`${id}:${id}`).toString('base64')
      const claims = [
        `Proxy-Authorization: Basic ${pass}`,
        `X-Forwarded-For: ${id}`,
        `X-Threadbox-Sandbox: ${id}`,
        `Forwarded: for=${id}`,
      ]
      const requests = claims.flatMap(claim => [
        `CONNECT ${name}:443 HTTP/1.1\r\nHost: ${name}\r\n${claim}\r\n\r\n`,
        `GET http://${name}/ HTTP/1.1\r\nHost: ${name}\r\n${claim}\r\n\r\n`,
      ])
      try {
        const found = await runInside(subject, 'egress/requests', { environment, words: requests })
        return asked === 0 ? found : [...found, `the server has asked its resolver for the name: ${asked}`]
      } finally {
        await subject.remove(environment)
      }
    },
  },
  {
    ...withProgram({
      id: 'egress/lying-requests',
      tried: 'sends the proxy requests whose Host, user, fragment or length lies about where they go',
      meaning: 'A rule could be passed by a request that names two places.',
    }),
    async run(subject) {
      const { bait } = subject
      const [name, trap, word] = [nameOf('lying'), `127.0.0.1:${bait.port}`, bait.wordOf('egress/lying-requests')]
      // The name has no address, so that a request for the name itself ends there.
      using _name = subject.answerName(name, () => [])
      const inner = `GET http://${trap}/${word} HTTP/1.1\r\nHost: ${trap}\r\n\r\n`
      const requests = [
        `GET http://${name}/${word} HTTP/1.1\r\nHost: ${trap}\r\n\r\n`,
        `GET http://${trap}/${word} HTTP/1.1\r\nHost: ${name}\r\n\r\n`,
        `GET /${word} HTTP/1.1\r\nHost: ${trap}\r\n\r\n`,
        `GET //${trap}/${word} HTTP/1.1\r\nHost: ${name}\r\n\r\n`,
        `GET http://${name}/${word} HTTP/1.1\r\nHost: ${name}\r\nHost: ${trap}\r\n\r\n`,
        `GET http://${name}@${trap}/${word} HTTP/1.1\r\nHost: ${name}\r\n\r\n`,
        `GET http://${trap}#@${name}/${word} HTTP/1.1\r\nHost: ${name}\r\n\r\n`,
        `GET http://${trap}\\@${name}/${word} HTTP/1.1\r\nHost: ${name}\r\n\r\n`,
        `CONNECT ${name}:443 HTTP/1.1\r\nHost: ${trap}\r\n\r\n${inner}`,
        `POST http://${name}/ HTTP/1.1\r\nHost: ${name}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
      ]
      return await caughtBy(subject, 'egress/lying-requests', 'egress/requests', requests, { isBare: true })
    },
  },
]
