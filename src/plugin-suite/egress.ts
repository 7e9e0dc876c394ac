import { runCommand } from '../environment/run-command.ts'
import type { Kit } from './kit.ts'
import { type BackendSubject, echoProxy } from './subject.ts'

/** Tests that the server's proxy is the only way out. */
export function describeProxy({ describe, test, expect }: Kit, subject: BackendSubject): void {
  const { create, shell } = subject

  describe('the proxy', () => {
    const ask = 'exec 3<>/dev/tcp/127.0.0.1/3128; echo hello >&3; read -r line <&3; echo "$line"'

    test('is reached at its address inside, by every environment as itself', async () => {
      const other = await create()
      try {
        const lines = [await shell(ask), await runCommand(other, { command: ask })].map(({ stdout }) => stdout)
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
        expect((await runCommand(subject.environment, { command: ['python3', '-c', script] })).stdout).toBe('got all\n')
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
      const { stdout, stderr } = await runCommand(subject.environment, {
        command: ['python3', '-c', script],
        timeoutMs: 20_000,
      })
      expect([stdout, stderr]).toEqual(['256\n256\n', ''])
      expect((await shell(ask)).stdout).toBe(`${subject.environment.id} hello\n`)
    })

    test('is there again for what runs inside once another instance of the backend is there', async () => {
      const made = await create()
      await runCommand(made, {
        command: 'while :; do (exec 3<>/dev/tcp/127.0.0.1/3128) 2>/dev/null; sleep 0.05; done &',
      })
      await subject.backend.close()
      const reached = Promise.withResolvers<string>()
      subject.serveProxy = (id, socket) => {
        reached.resolve(id)
        socket.destroy()
      }
      try {
        subject.backend = await subject.open()
        await subject.backend.list()
        expect(await reached.promise).toBe(made.id)
      } finally {
        subject.serveProxy = echoProxy
        await (await subject.backend.open(made.id))?.destroy()
      }
      const again = await subject.backend.open(subject.environment.id)
      if (!again) throw new Error('the first environment is lost')
      subject.environment = again
    })
  })
}

/** Tests environments that reach the network by themselves. */
export function describeOwnEgress({ describe, test, expect }: Kit, subject: BackendSubject): void {
  describe('its own way out', () => {
    // The network of the sandboxes may have its own proxy there.
    test('is what the backend says it has, and no proxy is named to a process that is not there', async () => {
      expect(subject.backend.egress).toBe('own')
      const named =
        "$(env | grep -iE '^(https?|all)_proxy=' | cut -d= -f2- | sed -E 's,^[a-z0-9]+://,,; s,/.*,,' | tr : /)"
      const { stdout } = await subject.shell(
        `for at in ${named}; do (exec 3<>/dev/tcp/$at) 2>/dev/null || echo "nothing is at $at"; done`,
      )
      expect(stdout).toBe('')
    })

    test('is changed while it is there, and told to the operator', async () => {
      const { environment } = subject
      await environment.setNetwork?.({ mode: 'none', layers: [] })
      expect(environment.confinement.join('\n')).toMatch(/^network: none/m)
      await environment.setNetwork?.({ mode: 'public', layers: [{ allowOut: ['192.0.2.1'] }] })
      expect(environment.confinement.join('\n')).toContain('192.0.2.1')
      await environment.setNetwork?.({ mode: 'public', layers: [] })
    })
  })
}
