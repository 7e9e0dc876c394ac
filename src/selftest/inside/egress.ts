import { createOwnAddressCheck } from './own-addresses.ts'
import { ownNetwork } from './own-network.ts'
import { abstractAddress } from './peer.ts'
import type { Attempt, Programs } from './program.ts'
import { lookUp, recordsOf } from './questions.ts'
import { AF_UNIX, SOCK_STREAM, sendDatagram, talk, withSocket } from './sockets.ts'
import { syscall } from './syscall.ts'

const PROXY_PORT = 3128

/**
 * The proxy answers with these statuses what it cannot read and what the rules refuse. Any other status means that the proxy connected or
 * tried to.
 */
const refusals = [400, 401, 403, 404, 405, 407]

/** A connection that does not leave the sandbox ends with one of these codes. Any other code comes from a network outside. */
const staysInside = ['ECONNRESET', 'EPIPE', 'ENETUNREACH', 'EPERM', 'EACCES', 'EADDRNOTAVAIL', 'EAFNOSUPPORT', 'EINVAL']

/** The first two words of these programs: the text that a visitor of the bait says, and the port of all targets. */
const heading = ({ words: [word = '', port = '', ...rest] }: Attempt) => ({ word, port: Number(port), rest })

const connectRequest = (host: string, port: number, ...headers: string[]) =>
  [`CONNECT ${host}:${port} HTTP/1.1`, `Host: ${host}:${port}`, ...headers, '', ''].join('\r\n')

/** Returns the status of the proxy's answer. Undefined when there is no proxy, or when it only closed the connection. */
function askProxy(request: string): number | undefined {
  const { text, code } = talk('127.0.0.1', PROXY_PORT, request)
  const [, status] = /^HTTP\/1\.[01] (\d{3}) /.exec(text) ?? []
  if (status !== undefined) return Number(status)
  // The proxy refuses at once. When it waits for somebody instead, that is a finding too.
  return code === 'EAGAIN' ? 504 : undefined
}

const isRefused = (status: number | undefined) => status === undefined || refusals.includes(status)

/** Asks the proxy for each given host, once by CONNECT and once by an absolute URL. */
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

/** Sends each given request to the proxy. */
function requests(attempt: Attempt): void {
  for (const request of attempt.words) {
    const status = askProxy(request)
    if (!isRefused(status)) attempt.found(`${request.split('\r\n', 2).join(', ')} was answered with ${status}`)
  }
}

/** Connects to each given address directly, as programs do that do not know the proxy. */
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

/** Each sandbox has its own loopback, where nothing listens at that port. */
const isOwn = (address: string, code: string) =>
  code === 'ECONNREFUSED' && /^(::ffff:)?127\.|^::1$|^0\.0\.0\.0$|^::$/.test(address)

/** Looks a name up and connects to the answer. At the second look-up the name has another address. */
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

/** Connects to an abstract socket of the host, which has a name but no file. */
function hostSocket({ words: [name = ''], refused }: Attempt): void {
  const address = abstractAddress(name)
  refused(
    `a connection to @${name}`,
    () => withSocket([AF_UNIX, SOCK_STREAM, 0], socket => syscall('connect', socket, address, address.byteLength)),
    ['ECONNREFUSED'],
  )
}

/** Looks each name up several times, and connects to the addresses that the sandbox's resolver gives and through the proxy. */
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

/** Sends a datagram to each address. One that the kernel accepted has left the sandbox or is lost, unless the address is the sandbox's own. */
function datagrams(attempt: Attempt): void {
  const { word, port, rest } = heading(attempt)
  const comesBack = createOwnAddressCheck()
  for (const address of rest) {
    const { code } = sendDatagram(address, port, Buffer.from(`${word}\n`), 'none')
    if (code !== undefined) {
      if (!staysInside.includes(code)) attempt.found(`the way to ${address} is open: ${code}`)
    } else if (!comesBack(address)) attempt.found(`a datagram to ${address} was taken`)
  }
}

export const egress: Programs = {
  ...{ throughProxy, requests, direct, rebinding, names, questions, datagrams, hostSocket },
  ...ownNetwork,
}
