import { ownNetwork } from './own-network.ts'
import { abstractAddress } from './peer.ts'
import type { Attempt, Programs } from './program.ts'
import { lookUp, recordsOf } from './questions.ts'
import { AF_UNIX, SOCK_STREAM, sendDatagram, talk, withSocket } from './sockets.ts'
import { syscall } from './syscall.ts'

const PROXY_PORT = 3128

/** The proxy's answers to what it cannot read, and to what the rules refuse. Any other says that it went there, or tried. */
const refusals = [400, 401, 403, 404, 405, 407]

/** How a connection ends that does not leave the sandbox. Any other end is one that a network outside has made. */
const staysInside = ['ECONNRESET', 'EPIPE', 'ENETUNREACH', 'EPERM', 'EACCES', 'EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL']

/** The first words of these programs: what a visitor of the bait says, and the port of all targets. */
const heading = ({ words: [word = '', port = '', ...rest] }: Attempt) => ({ word, port: Number(port), rest })

const connectRequest = (host: string, port: number, ...headers: string[]) =>
  [`CONNECT ${host}:${port} HTTP/1.1`, `Host: ${host}:${port}`, ...headers, '', ''].join('\r\n')

/** The status of the proxy's answer. Undefined when there is no proxy, or it has only closed the connection. */
function askProxy(request: string): number | undefined {
  const { text, code } = talk('127.0.0.1', PROXY_PORT, request)
  const [, status] = /^HTTP\/1\.[01] (\d{3}) /.exec(text) ?? []
  if (status !== undefined) return Number(status)
  // The proxy answers what it refuses at once. That it waits for somebody is an answer too.
  return code === 'EAGAIN' ? 504 : undefined
}

const isRefused = (status: number | undefined) => status === undefined || refusals.includes(status)

/** Asks the proxy for each host that is given, by CONNECT and by a request of its own. */
function throughProxy(attempt: Attempt): void {
  const { word, port, rest } = heading(attempt)
  for (const host of rest) {
    const plain = `GET http://${host}:${port}/${word} HTTP/1.1\r\nHost: ${host}:${port}\r\nConnection: close\r\n\r\n`
    for (const request of [connectRequest(host, port), plain]) {
      const status = askProxy(request)
      const method = request.slice(0, request.indexOf(' '))
      if (!isRefused(status)) attempt.found(`${method} to ${host} port ${port} was answered with ${status}`)
    }
  }
}

/** Sends the proxy each request that is given. */
function requests(attempt: Attempt): void {
  for (const request of attempt.words) {
    const status = askProxy(request)
    if (!isRefused(status)) attempt.found(`${request.split('\r\n', 2).join(', ')} was answered with ${status}`)
  }
}

/** Connects to each address that is given, as programs do that know no proxy. */
function direct(attempt: Attempt): void {
  const { word, port, rest } = heading(attempt)
  for (const address of rest) {
    const { text, code } = talk(address, port, `${word}\n`)
    if (text !== '') attempt.found(`${address} port ${port} was reached, and has answered`)
    else if (code !== undefined && !staysInside.includes(code) && !isOwn(address, code)) {
      attempt.found(`the way to ${address} is open: ${code}`)
    }
  }
}

/** Every sandbox has a loopback of its own, where nothing listens at that port. */
const isOwn = (address: string, code: string) =>
  code === 'ECONNREFUSED' && /^(::ffff:)?127\.|^::1$|^0\.0\.0\.0$|^::$/.test(address)

/** Looks a name up and connects to what it is told then: at its second look-up the name is another address. */
function rebinding(attempt: Attempt): void {
  const { word, port, rest } = heading(attempt)
  for (const name of rest) {
    const address = lookUp(name)
    if (address === undefined) throw new Error(`${name} was not found at first`)
    const { text } = talk(address, port, `${word}\n`)
    if (text !== '') attempt.found(`${name} led to ${address}, which has answered`)
    if (askProxy(connectRequest(name, port)) === 200) attempt.found(`the proxy went to ${name}`)
  }
}

/** Connects to a socket of the host that has a name and no file. */
function hostSocket({ words: [name = ''], refused }: Attempt): void {
  const address = abstractAddress(name)
  refused(
    `a connection to @${name}`,
    () => withSocket([AF_UNIX, SOCK_STREAM, 0], socket => syscall('connect', socket, address, address.byteLength)),
    ['ECONNREFUSED'],
  )
}

/** Looks each name up, several times, and connects to what the sandbox's resolver gives and by the proxy. */
function names(attempt: Attempt): void {
  const { word, port, rest } = heading(attempt)
  for (const name of rest) {
    for (const round of [1, 2, 3]) {
      const address = lookUp(name)
      const said = address === undefined ? undefined : talk(address, port, `${word}\n`)
      if (said && said.text !== '') attempt.found(`${name} led to ${address}, which has answered, at try ${round}`)
      if (askProxy(connectRequest(name, port)) === 200) attempt.found(`the proxy went to ${name} at try ${round}`)
    }
  }
}

/** Asks the resolver and the proxy for names that no rule allows. */
function questions({ words, found }: Attempt): void {
  for (const name of words) {
    for (const kind of recordsOf(name)) found(`the resolver has an answer for ${name}, kind ${kind}`)
    const status = askProxy(connectRequest(name, 443))
    if (!isRefused(status)) found(`the proxy looked for ${name}: ${status}`)
  }
}

/** Sends a datagram to each address: one that is taken has left, or is lost. */
function datagrams(attempt: Attempt): void {
  const { word, port, rest } = heading(attempt)
  for (const address of rest) {
    const { code } = sendDatagram(address, port, Buffer.from(`${word}\n`), 'none')
    if (code === undefined) attempt.found(`a datagram to ${address} was taken`)
    else if (!staysInside.includes(code)) attempt.found(`the way to ${address} is open: ${code}`)
  }
}

export const egress: Programs = {
  ...{ throughProxy, requests, direct, rebinding, names, questions, datagrams, hostSocket },
  ...ownNetwork,
}
