import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Duplex } from 'node:stream'
import { rulesAnew } from '../../src/guest/redirect/rules.ts'
import type { openTestSandbox, TestSandbox } from '../support/sandbox.ts'

setDefaultTimeout(60_000)

/** What programs that know no proxy connect to, in the sandboxes of a backend. */
export function describeDirect(what: string, open: typeof openTestSandbox): void {
  describe(what, () => {
    /** Where programs wanted to go. */
    const asked: string[] = []

    /** Says the destination, and then echoes. */
    function echo(_id: string, socket: Duplex, { address, port }: { address: string; port: number }): void {
      asked.push(`${address} ${port}`)
      socket.on('error', () => {})
      socket.write(`${address} ${port}: `)
      socket.pipe(socket)
    }

    let sandbox: TestSandbox
    beforeAll(async () => {
      sandbox = await open({ serveDirect: echo })
    })
    afterAll(() => sandbox.close())

    /** Runs Python inside, without variables of a proxy. */
    const python = async (lines: readonly string[]) => {
      const program = ['import socket, time, errno', ...lines].join('\n')
      return await sandbox.shell(`python3 - <<'PROGRAM'\n${program}\nPROGRAM`)
    }

    test.each([
      ['203.0.113.5', 5432],
      ['198.18.3.4', 443],
      ['10.9.8.7', 22],
      ['169.254.169.254', 80],
      ['2606:4700::1111', 443],
      ['fd00::5', 6379],
    ])('a connection to %s port %d comes to the server, which sees where it was to go', async (address, port) => {
      const said = await python([
        `s = socket.create_connection(("${address}", ${port}), 10)`,
        's.sendall(b"hello"); s.shutdown(socket.SHUT_WR)',
        'print(b"".join(iter(lambda: s.recv(100), b"")).decode())',
      ])
      expect(said).toBe(`${address} ${port}: hello\n`)
    })

    test('a port of the sandbox’s own is reached inside, by each of its own addresses', async () => {
      const before = asked.length
      const said = await python([
        's = socket.create_server(("0.0.0.0", 0)); port = s.getsockname()[1]',
        'for host in "127.0.0.1", "127.9.9.9", "198.18.0.1", "0.0.0.0", "localhost":',
        '  c = socket.create_connection((host, port), 10); a, _ = s.accept(); a.sendall(b"own"); print(c.recv(3).decode())',
      ])
      expect(said).toBe('own\n'.repeat(5))
      expect(asked.length).toBe(before)
    })

    test('a connection to the port that all are led to is reset, and not led to itself: regression', async () => {
      const before = asked.length
      const said = await python([
        'for host in "127.0.0.1", "::1", "198.18.0.1":',
        '  try:',
        '    c = socket.create_connection((host, 3129), 10); c.sendall(b"x"); print(c.recv(10))',
        '  except OSError as e: print(errno.errorcode[e.errno])',
      ])
      expect(said).toBe('ECONNRESET\nECONNRESET\nECONNREFUSED\n')
      expect(asked.length).toBe(before)
    })

    test('what is neither TCP nor a question for a name is refused at once', async () => {
      const said = await python([
        'for family, host in (socket.AF_INET, "203.0.113.9"), (socket.AF_INET6, "2606:4700::1"):',
        '  s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(30)',
        '  for port in 443, 123:',
        '    try: print(s.sendto(b"x", (host, port)))',
        '    except OSError as e: print(errno.errorcode[e.errno])',
        '  for protocol in socket.IPPROTO_ICMP, socket.IPPROTO_RAW, socket.IPPROTO_SCTP:',
        '    try: socket.socket(family, socket.SOCK_RAW, protocol); print("made")',
        '    except OSError as e: print(errno.errorcode[e.errno])',
        '  icmp, echo = (socket.IPPROTO_ICMP, 8) if family == socket.AF_INET else (socket.IPPROTO_ICMPV6, 128)',
        '  try: print(socket.socket(family, socket.SOCK_DGRAM, icmp).sendto(bytes([echo, *range(15)]), (host, 0)))',
        '  except OSError as e: print(errno.errorcode[e.errno])',
      ])
      const refused = ['EPERM', 'EPERM', 'EPERM', 'EPERM', 'EPERM']
      expect(said.trim().split('\n')).toEqual([...refused, 'EACCES', ...refused, 'EACCES'])
    })

    test('connections inside are not remembered, and nothing leaves from a loopback address', async () => {
      const said = await python([
        'count = lambda: int(open("/proc/sys/net/netfilter/nf_conntrack_count").read())',
        's = socket.create_server(("127.0.0.1", 0)); before = count()',
        'for i in range(200):',
        '  c = socket.create_connection(s.getsockname()); s.accept()[0].close(); c.recv(1); c.close()',
        'print(count() - before < 100)',
        'try: socket.create_connection(("203.0.113.5", 80), 30, ("127.0.0.1", 0))',
        'except OSError as e: print(errno.errorcode[e.errno])',
      ])
      expect(said).toBe('True\nECONNREFUSED\n')
    })

    test('a flood of connections, or of questions, takes a bounded part of the machine’s memory, regression', async () => {
      const said = await python([
        'count = lambda: int(open("/proc/sys/net/netfilter/nf_conntrack_count").read())',
        'def show(perSecond, before, began):',
        '  made = count() - before; bound = 2000 + perSecond * (time.monotonic() - began)',
        '  print(100 < made < bound * 1.1 + 100)',
        'before = count(); began = time.monotonic()',
        'for i in range(20000):',
        '  s = socket.socket(); s.setblocking(False); s.connect_ex(("203.0.113.5", 1024 + i)); s.close()',
        'show(500, before, began); before = count(); began = time.monotonic()',
        'for i in range(20000):',
        '  s = socket.socket(type=socket.SOCK_DGRAM)',
        '  try: s.sendto(b"x" * 20, ("203.0.113.5", 53))',
        '  except PermissionError: pass',
        '  s.close()',
        'show(1000, before, began)',
        's = socket.create_connection(("203.0.113.5", 5432), 30); print(s.recv(100).decode())',
      ])
      expect(said).toBe('True\nTrue\n203.0.113.5 5432: \n')
    })

    /** Sends bytes to the kernel over netlink, and prints the name of the first error. */
    const toKernel = (protocol: number, hex: string) => [
      `k = socket.socket(16, socket.SOCK_RAW, ${protocol}); k.settimeout(30); k.sendto(bytes.fromhex("${hex}"), (0, 0))`,
      'answer = k.recv(65536); print(errno.errorcode[-int.from_bytes(answer[16:20], "little", signed=True)])',
    ]

    test('root inside cannot change the rules, the routes or the network it is in: regression', async () => {
      const deleteAll = Buffer.concat(
        rulesAnew.slice(0, 2).map(({ type, body }, sequence) => {
          const head = Buffer.alloc(16)
          head.writeUInt32LE(16 + body.byteLength, 0)
          head.writeUInt16LE(type, 4)
          head.writeUInt16LE(5, 6)
          head.writeUInt32LE(sequence, 8)
          return Buffer.concat([head, body])
        }),
      )
      // Takes the loopback interface down, and removes the route to everywhere.
      const down = '20000000100005000000000000000000 00000000 01000000 00000000 01000000'
      const noRoute = '1c000000190005000000000000000000 02000000 fe000000 00000000'
      const said = await python([
        'import ctypes; libc = ctypes.CDLL(None, use_errno=True)',
        ...toKernel(12, deleteAll.toString('hex')),
        ...toKernel(0, down),
        ...toKernel(0, noRoute),
        'for flags in 0x40000000, 0x50000000, 0x10000000: print(libc.unshare(flags), errno.errorcode[ctypes.get_errno()])',
        'try: open("/proc/sys/net/ipv4/ip_forward", "w")',
        'except OSError as e: print(errno.errorcode[e.errno])',
        's = socket.create_connection(("203.0.113.5", 5432), 10); print(s.recv(100).decode())',
      ])
      const refused = ['EPERM', 'EPERM', 'EPERM', '-1 EPERM', '-1 EPERM', '-1 EPERM', 'EROFS']
      expect(said.trim().split('\n')).toEqual([...refused, '203.0.113.5 5432:'])
    })

    test('more connections than one sandbox may have are reset, and later ones are served', async () => {
      const said = await python([
        'held, ends = [], 0',
        'for i in range(300):',
        '  try: held.append(socket.create_connection(("203.0.113.5", 80), 30))',
        // It may come before the program looks whether it is connected.
        '  except ConnectionResetError: ends += 1',
        'for c in held:',
        '  try: ends += c.recv(1) == b""',
        '  except ConnectionResetError: ends += 1',
        'print(ends)',
        'for c in held: c.close()',
        'while True:',
        '  try:',
        '    if socket.create_connection(("203.0.113.5", 80), 30).recv(1) == b"2": break',
        '  except ConnectionResetError: time.sleep(0.05)',
        'print("served")',
      ])
      expect(said).toBe('44\nserved\n')
    })
  })
}
