import type { Kit } from './kit.ts'
import type { BackendSubject } from './subject.ts'

/** Tests connections to servers inside. */
export function describeConnect({ describe, test, expect }: Kit, subject: BackendSubject): void {
  const { shell } = subject

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
}
