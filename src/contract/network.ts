import { runShell } from '../guest/shell.ts'
import type { Kit } from './kit.ts'
import { type BackendSubject, echoProxy } from './subject.ts'

/** Servers inside, and the proxy as the only way out. */
export function describeNetwork({ describe, test, expect }: Kit, subject: BackendSubject): void {
  const { create, shell } = subject

  describe('connect', () => {
    test('reaches a server that an earlier command left behind', async () => {
      await shell(
        'mkdir -p /tmp/www && cd /tmp/www && echo served > index.html && { python3 -m http.server 8123 >/dev/null 2>&1 & }',
      )
      await shell(
        'for i in $(seq 200); do (exec 3<>/dev/tcp/127.0.0.1/8123) 2>/dev/null && exit; sleep 0.02; done; exit 1',
      )
      const socket = await subject.environment.connect(8123)
      socket.end('GET / HTTP/1.0\r\n\r\n')
      let answer = ''
      for await (const chunk of socket) answer += chunk
      expect(answer).toMatch(/served\n$/)
    })

    test('rejects when nothing listens', async () => {
      await expect(subject.environment.connect(8124)).rejects.toMatchObject({ code: 'port_unreachable' })
    })
  })

  describe('the proxy', () => {
    const ask = 'exec 3<>/dev/tcp/127.0.0.1/3128; echo hello >&3; read -r line <&3; echo "$line"'

    test('is reached at its address inside, by every environment as itself', async () => {
      const other = await create()
      try {
        const lines = [await shell(ask), await runShell(other, { command: ask })].map(({ stdout }) => stdout)
        expect(lines).toEqual([`${subject.environment.id} hello\n`, `${other.id} hello\n`])
      } finally {
        await other.destroy()
      }
    })

    test('is named to every process, and an own name for it wins', async () => {
      const command = 'echo $HTTP_PROXY $https_proxy $NO_PROXY $NODE_USE_ENV_PROXY'
      const env = { https_proxy: 'http://own:1' }
      expect((await shell(command)).stdout).toBe(
        'http://127.0.0.1:3128 http://127.0.0.1:3128 localhost,127.0.0.1,::1 1\n',
      )
      expect((await shell(command, { env })).stdout).toBe(
        'http://127.0.0.1:3128 http://own:1 localhost,127.0.0.1,::1 1\n',
      )
    })

    test('is told when a process has ended its side, and answers still', async () => {
      subject.serveProxy = (_, socket) => {
        let text = ''
        socket.on('data', chunk => (text += chunk)).on('end', () => socket.end(`got ${text}`))
      }
      try {
        const script = [
          'import socket; s = socket.create_connection(("127.0.0.1", 3128)); s.sendall(b"all")',
          's.shutdown(socket.SHUT_WR); print(s.makefile().read())',
        ].join('\n')
        expect((await runShell(subject.environment, { command: ['python3', '-c', script] })).stdout).toBe('got all\n')
      } finally {
        subject.serveProxy = echoProxy
      }
    })

    test('is the only way out: regression', async () => {
      const addresses = ['1.1.1.1/53', '10.0.0.1/80', '169.254.169.254/80']
      const tries = addresses.map(each => `(exec 3<>/dev/tcp/${each}) 2>/dev/null && echo ${each}`)
      expect((await shell(`${tries.join('; ')}; cat /proc/net/route | tail -n +2`)).stdout).toBe('')
    })

    test('takes 256 connections at once and more when they are over', async () => {
      const script = [
        'import socket',
        'def say():',
        '  s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(10); s.sendall(b"x\\n"); return s',
        'def heard(s):',
        '  try: return s.makefile().readline().endswith("x\\n")',
        '  except OSError: return False',
        'for _ in range(2):',
        '  all = [say() for _ in range(300)]; print(sum(map(heard, all)))',
        '  for s in all: s.close()',
        '  import time; time.sleep(0.5)',
      ].join('\n')
      const { stdout, stderr } = await runShell(subject.environment, {
        command: ['python3', '-c', script],
        timeoutMs: 20_000,
      })
      expect([stdout, stderr]).toEqual(['256\n256\n', ''])
      expect((await shell(ask)).stdout).toBe(`${subject.environment.id} hello\n`)
    })
  })
}
