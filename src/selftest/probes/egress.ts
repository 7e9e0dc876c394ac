import { createServer } from 'node:net'
import type { Probe } from '../probe.ts'
import { runInside } from '../run-inside.ts'
import type { Subject } from '../subject.ts'
import { baitProbe, isLoopback, withProgram } from './bait-probe.ts'
import { namesAndRequests } from './egress-names.ts'

/** Programs and libraries write 127.0.0.1 in these forms. */
const spellings = [
  ...['2130706433', '0x7f000001', '017700000001', '0177.0.0.1', '0x7f.1', '127.1', '127.0.0.1.', '0', '0.0.0.0'],
  ...['localhost', 'LOCALHOST.', '%31%32%37.0.0.1', '127.0.0.1%00.example.com', '127。0。0。1'],
]

/** IPv6 addresses that stand for 127.0.0.1: mapped, compatible, translated, NAT64, 6to4. */
const embedded = [
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::127.0.0.1]',
  '[::ffff:0:127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '[2002:7f00:1::]',
]

/** The list has one address of each private range. Few networks have a machine at the range's end. */
const privateAddresses = [
  '10.255.255.254',
  '172.31.255.254',
  '192.168.255.254',
  '100.127.255.254',
  'fd00::ffff:fffe',
  'fe80::ffff:fffe',
  'fec0::fffe',
]

/** At these addresses, clouds give a machine its identity and its keys. */
const metadata = ['169.254.169.254', '169.254.170.2', '168.63.129.16', '100.100.100.200', 'fd00:ec2::254']

const bracketed = (address: string) => (address.includes(':') ? `[${address}]` : address)
const ownAddresses = ({ bait }: Subject) => bait.addresses.filter(address => !isLoopback(address))
const noOwnAddress = (subject: Subject) =>
  ownAddresses(subject).length === 0 ? 'This machine has no address but loopback.' : undefined

const byProxy = (id: string, tried: string, meaning: string, hosts: (subject: Subject) => readonly string[]) =>
  baitProbe({ id, tried, meaning, program: 'egress/throughProxy', words: hosts })

export const egress: readonly Probe[] = [
  byProxy(
    'egress/loopback',
    "asks the proxy for this machine's loopback",
    'A process inside could use servers that this machine keeps for itself.',
    () => ['127.0.0.1', '127.0.0.2', '[::1]', '[::]'],
  ),
  {
    ...byProxy(
      'egress/own-addresses',
      "asks the proxy for this machine's own addresses",
      'A process inside could use servers of this machine as a neighbour in its network can.',
      subject => ownAddresses(subject).map(bracketed),
    ),
    excuse: noOwnAddress,
  },
  byProxy(
    'egress/spellings',
    'asks the proxy for 127.0.0.1 in decimal, octal, hexadecimal and shortened forms',
    'A rule against an address could be passed by writing it in another way.',
    () => spellings,
  ),
  byProxy(
    'egress/embedded',
    'asks the proxy for 127.0.0.1 as an IPv6 address: mapped, translated, by NAT64 and 6to4',
    'A rule against an IPv4 address could be passed by writing it in IPv6.',
    () => embedded,
  ),
  byProxy(
    'egress/private',
    'asks the proxy for addresses of private networks',
    'A process inside could reach machines of your network that the internet does not reach.',
    () => privateAddresses.map(bracketed),
  ),
  byProxy(
    'egress/metadata',
    "asks the proxy for the cloud's metadata server",
    "A process inside could get this machine's credentials from its cloud.",
    () => metadata.map(bracketed),
  ),
  baitProbe({
    id: 'egress/direct',
    tried: 'connects to private addresses and the metadata server without the proxy',
    meaning: 'A program that knows no proxy could reach your network, and the credentials of your cloud.',
    program: 'egress/direct',
    words: () => [...privateAddresses, ...metadata, '::ffff:10.255.255.254', '64:ff9b::a9fe:a9fe'],
  }),
  baitProbe({
    id: 'egress/direct-host',
    tried: "connects to this machine's loopback and its own addresses without the proxy",
    meaning: 'A program that knows no proxy could use servers that this machine keeps for itself.',
    program: 'egress/direct',
    words: ({ bait }) => [...bait.addresses, '127.0.0.2', '0.0.0.0', '::ffff:127.0.0.1'],
  }),
  baitProbe({
    id: 'egress/datagrams',
    tried: 'sends UDP datagrams to this machine, to private addresses and outside',
    meaning: 'A process inside could send data to where no rule allows it.',
    program: 'egress/datagrams',
    words: subject => [
      ...ownAddresses(subject),
      ...privateAddresses.slice(0, 5),
      ...metadata.slice(0, 1),
      '203.0.113.77',
    ],
  }),
  withProgram({
    id: 'egress/echo',
    tried: 'sends ICMP echo requests',
    meaning: 'A process inside could send data in echo requests to where no rule allows it.',
    words: subject => [...ownAddresses(subject), '10.255.255.254', '203.0.113.77', 'fd00::ffff:fffe'],
  }),
  withProgram({
    id: 'egress/raw',
    tried: 'opens raw sockets and sockets for packets',
    meaning: 'A process inside could send packets of any form, and read those of others.',
  }),
  withProgram({
    id: 'egress/transports',
    tried: 'connects by SCTP and DCCP',
    meaning: 'A process inside could get out by a transport that no rule looks at.',
    words: subject => [`${subject.bait.port}`, ...ownAddresses(subject), '10.255.255.254'],
  }),
  withProgram({
    id: 'egress/families',
    tried: 'opens sockets of families that no network namespace holds back',
    meaning:
      "A process inside could speak with the machine below this one, or with parts of the kernel that are the host's.",
  }),
  withProgram({
    id: 'egress/interfaces',
    tried: 'looks for network interfaces beside loopback',
    meaning: 'The sandbox has a way out of its own beside the rules.',
  }),
  withProgram({
    id: 'egress/rules',
    tried: 'deletes rules of netfilter as root inside',
    meaning: "Root inside could take away the rules that lead connections to the server, or the host's.",
  }),
  withProgram({
    id: 'egress/links',
    tried: 'changes the loopback interface and its addresses as root inside',
    meaning: 'Root inside could give the sandbox another network than the server means it to have.',
  }),
  withProgram({
    id: 'egress/routes',
    tried: 'removes routes as root inside',
    meaning: 'Root inside could lead connections past the server.',
  }),
  withProgram({
    id: 'egress/resolver-port',
    program: 'egress/takePorts',
    tried: "takes the resolver's port as root inside",
    meaning: 'One program inside could answer the look-ups of the others.',
    words: () => ['53'],
  }),
  withProgram({
    id: 'egress/proxy-port',
    program: 'egress/takePorts',
    tried: "takes the proxy's ports as root inside",
    meaning: 'One program inside could read what the others send through the proxy, with their credentials.',
    // On gVisor without --net-raw nothing uses the second one, so that it is free.
    words: ({ isolation }) => (isolation === 'gvisor' ? ['3128'] : ['3128', '3129']),
  }),
  {
    ...withProgram({
      id: 'egress/host-sockets',
      tried: 'connects to a socket of this machine that has a name and no file',
      meaning: "A process inside could speak with the host's desktop, containers and services.",
    }),
    async run(subject) {
      const name = `selftest-${crypto.randomUUID()}`
      let visits = 0
      const server = createServer(socket => void socket.on('error', () => {}).end(`${++visits}`))
      await new Promise<void>(resolve => server.listen(`\0${name}`, resolve))
      try {
        const found = await runInside(subject, 'egress/hostSocket', { words: [name] })
        return visits === 0 ? found : [...found, 'the socket of the host has had a visit']
      } finally {
        await new Promise(resolve => server.close(resolve))
      }
    },
  },
  ...namesAndRequests,
]
