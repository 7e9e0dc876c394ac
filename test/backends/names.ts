import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createEgress } from '../../src/egress/egress.ts'
import type { Policy } from '../../src/egress/policy.ts'
import { parseRules } from '../../src/egress/rules.ts'
import type { openTestSandbox, TestSandbox } from '../support/sandbox.ts'

setDefaultTimeout(60_000)

/** Names inside the sandboxes of a backend. */
export function describeNames(what: string, open: typeof openTestSandbox): void {
  describe(what, () => {
    const failure = (code: string) => Object.assign(new Error(code), { code })

    /** A web server outside. */
    const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('outside') })
    const port = server.port ?? 0

    const TXT = 16
    /** What the server's resolver was asked. */
    const asked: string[] = []
    const policy: Policy = {
      mode: 'public',
      ceiling: parseRules(['127.0.0.0/8']),
      layers: [
        { allow: parseRules([`*.example.com:${port}`, `127.0.0.1:${port}`]), deny: parseRules(['denied.example.com']) },
      ],
    }
    /** The rules without those for addresses, by which any name may be asked for. */
    const byName: Policy = { ...policy, layers: [{ allow: parseRules(['*.example.com']), deny: [] }] }
    let rules = policy
    const egress = createEgress({
      policyOf: () => rules,
      log: () => {},
      async resolve(name) {
        asked.push(name)
        if (name === 'both.example.com') return ['127.0.0.1', '::1']
        if (name === 'web.example.com') return ['127.0.0.1']
        throw failure('ENOTFOUND')
      },
      async findRecords(name, type) {
        asked.push(`${type} ${name}`)
        if (name.startsWith('missing') || name.includes('.both')) throw failure('ENOTFOUND')
        if (type !== TXT) return []
        return [...'abcdefghijklmnopqrst'].map(letter => ({
          type: TXT,
          ttl: 60,
          data: Buffer.from(`\xfa${letter.repeat(250)}`, 'latin1'),
        }))
      },
    })
    const { serve: serveProxy, serveDirect, answerName } = egress
    let sandbox: TestSandbox
    beforeAll(async () => {
      sandbox = await open({ serveProxy, serveDirect, answerName })
    })
    afterAll(async () => {
      await sandbox.close()
      egress.close()
      await server.stop(true)
    })
    /** Runs Python inside, without variables of a proxy. */
    const python = async (lines: readonly string[]) => {
      const program = ['import socket, struct, os', ...lines].join('\n')
      return await sandbox.shell(`python3 - <<'PROGRAM'\n${program}\nPROGRAM`)
    }

    /** A question for the addresses of a name, and what it is answered with. */
    const dns = [
      'def query(name, kind=1): return struct.pack(">6H", 7, 256, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + struct.pack(">BHH", 0, kind, 1)',
      'def ask(name, kind=1, host="127.0.0.1", seconds=20):',
      '  s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(seconds)',
      '  s.connect((host, 53)); s.send(query(name, kind)); return s.recv(65535)',
      'def code(answer): return answer[3] & 15',
    ]

    test('a program that knows no proxy reaches an allowed name by its own look-up', async () => {
      const said = await python([
        'from urllib.request import ProxyHandler, build_opener, urlopen',
        'opener = build_opener(ProxyHandler({}))',
        `for name in "web", "both": print(opener.open(f"http://{name}.example.com:${port}/", None, 20).read())`,
        `print(urlopen("http://web.example.com:${port}/", None, 20).read())`,
      ])
      expect(said).toBe("b'outside'\n".repeat(3))
      expect(egress.decisions(sandbox.environment.id)[0]).toMatchObject({
        host: 'web.example.com',
        port,
        isAllowed: true,
      })
    })

    test('libraries see addresses of the pool, of the kinds that a name has, and no name that is not there or not allowed', async () => {
      const said = await python([
        'for name in "both.example.com", "web.example.com", "sandbox", "localhost", "missing.example.com", "denied.example.com":',
        '  try: print(name, *sorted({a[4][0] for a in socket.getaddrinfo(name, 80)}))',
        '  except socket.gaierror as e: print(name, e.errno == socket.EAI_NONAME)',
      ])
      const [four, six] = ['198\\.1[89]\\.\\d+\\.\\d+', 'fd74:6872:6561:6462::[0-9a-f:]+']
      expect(said.trim().split('\n')).toEqual([
        expect.stringMatching(new RegExp(`^both.example.com ${four} ${six}$`)),
        expect.stringMatching(new RegExp(`^web.example.com ${four}$`)),
        'sandbox 127.0.0.1',
        expect.stringMatching(/^localhost 127\.0\.0\.1( ::1)?$/),
        'missing.example.com True',
        'denied.example.com True',
      ])
    })

    test('the rules of its own port hold for a name with a wildcard, and another port is reset', async () => {
      rules = { ...policy, layers: [{ allow: parseRules([`*.example.com:${port}`]), deny: [] }, ...policy.layers] }
      const said = await python([
        `for port in ${port}, 1:`,
        '  try: s = socket.create_connection(("web.example.com", port), 20); s.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n"); print(len(s.recv(10)))',
        '  except OSError as e: print(type(e).__name__)',
      ])
      rules = policy
      expect(said).toBe('10\nConnectionResetError\n')
      expect(egress.decisions(sandbox.environment.id)[0]).toMatchObject({
        host: 'web.example.com',
        port: 1,
        isAllowed: false,
      })
    })

    test('answers come over UDP and TCP, of IPv4 and IPv6, and for whatever resolver a program names', async () => {
      const said = await python([
        ...dns,
        'for host in "127.0.0.1", "::1", "8.8.8.8", "2001:4860:4860::8888": print(host, code(ask("web.example.com", 1, host)))',
        'print(ask("web.example.com", 16)[2] & 2, len(ask("web.example.com", 16)))',
        'for host in "127.0.0.1", "::1", "9.9.9.9":',
        '  s = socket.create_connection((host, 53), 20); q = query("web.example.com", 16); f = s.makefile("rb")',
        '  for part in (struct.pack(">H", len(q)) + q) * 2, : s.sendall(part[:9]); s.sendall(part[9:])',
        '  print([len(f.read(struct.unpack(">H", f.read(2))[0])) for _ in range(2)])',
      ])
      const whole = 12 + 21 + 20 * (12 + 251)
      expect(said.trim().split('\n')).toEqual([
        ...['127.0.0.1 0', '::1 0', '8.8.8.8 0', '2001:4860:4860::8888 0'],
        `2 ${12 + 21}`,
        ...Array(3).fill(`[${whole}, ${whole}]`),
      ])
    })

    test('questions of all kinds at once, as of programs for both addresses, are each answered by their own', async () => {
      const said = await python([
        ...dns,
        's = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(50)]',
        'for i, each in enumerate(s):',
        '  each.settimeout(20); each.connect(("127.0.0.1", 53))',
        '  for kind in 1, 28: each.send(query(f"N{i}.both.example.com" if i % 2 else "both.example.com", kind))',
        'print(*sorted({(i % 2, code(a)) for i, each in enumerate(s) for a in (each.recv(999), each.recv(999)) if query("x")[:2] == a[:2]}))',
      ])
      expect(said.trim()).toBe('(0, 0) (1, 3)')
    })

    test('a name that no rule allows is never asked for outside: regression', async () => {
      rules = byName
      asked.length = 0
      const said = await python([
        ...dns,
        'print({code(ask("c2VjcmV0.tunnel.example", kind)) for kind in (1, 28, 5, 6, 12, 15, 16, 33, 65, 99, 257)})',
      ])
      rules = policy
      expect(said.trim()).toBe('{3}')
      expect(asked).toEqual([])
    })

    test('root inside cannot take the place of the resolver: regression', async () => {
      const said = await python([
        'for kind in socket.SOCK_DGRAM, socket.SOCK_STREAM:',
        '  for family, hosts in (socket.AF_INET, ("127.0.0.1", "0.0.0.0")), (socket.AF_INET6, ("::1", "::")):',
        '    for host in hosts:',
        '      s = socket.socket(family, kind)',
        '      for option in 2, 15: s.setsockopt(socket.SOL_SOCKET, option, 1)',
        '      try:',
        '        s.bind((host, 53))',
        '        if kind == socket.SOCK_STREAM: s.listen()',
        '        print(host, "bound")',
        '      except OSError as e: print(host, e.strerror)',
      ])
      const hosts = ['127.0.0.1', '0.0.0.0', '::1', '::', '127.0.0.1', '0.0.0.0', '::1', '::']
      expect(said.trim().split('\n')).toEqual(hosts.map(host => `${host} Address already in use`))
    })

    test('floods, malformed messages and connections that say nothing leave the resolver answering: regression', async () => {
      const said = await python([
        ...dns,
        's = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("127.0.0.1", 53)); s.setblocking(False)',
        'for i in range(5000):',
        '  try: s.send(os.urandom(1 + i % 700) if i % 2 else query(f"n{i}.example.com"))',
        '  except OSError: pass',
        'idle = [socket.create_connection(("127.0.0.1", 53), 20) for _ in range(100)]',
        'for i, each in enumerate(idle):',
        '  try: each.sendall([b"", b"\\xff\\xff", b"\\0\\0" * 50, os.urandom(3000)][i % 4])',
        '  except OSError: pass',
        // While the flood lasts, a question is lost or answered with a failure.
        'def patient():',
        '  while True:',
        '    try:',
        '      if code(ask("web.example.com", seconds=0.5)) == 0: return 0',
        '    except OSError: pass',
        'print(patient())',
        'for each in idle: each.close()',
      ])
      expect(said).toBe('0\n')
      expect(await sandbox.shell('getent ahosts web.example.com')).toMatch(/^198\.1[89]\./)
    })
  })
}
