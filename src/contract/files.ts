import type { Kit } from './kit.ts'
import type { BackendSubject } from './subject.ts'

/** File operations, inside only. */
export function describeFiles({ describe, test, expect }: Kit, subject: BackendSubject): void {
  const { shell } = subject

  describe('files', () => {
    test('are written with their parents and read back', async () => {
      expect(await subject.environment.files.write('/srv/deep/er/a.txt', Buffer.from('hällo'))).toBe(6)
      const { size, body } = await subject.environment.files.read('/srv/deep/er/a.txt')
      expect([size, await new Response(body).text()]).toEqual([6, 'hällo'])
    })

    test('of 20 MB go both ways as streams', async () => {
      const piece = new Uint8Array(1_000_000).fill(5)
      let pieces = 0
      const body = new ReadableStream<Uint8Array>({
        pull: controller => (pieces++ < 20 ? controller.enqueue(piece) : controller.close()),
      })
      expect(await subject.environment.files.write('/tmp/large', body)).toBe(20_000_000)
      const file = await subject.environment.files.read('/tmp/large')
      let read = 0
      for await (const chunk of file.body) read += chunk.byteLength
      expect([file.size, read]).toEqual([20_000_000, 20_000_000])
    })

    test('that end at a full disk end their sender too: regression', async () => {
      let sent = 0
      const endless = new ReadableStream<Uint8Array>({
        pull(controller) {
          sent += 1
          controller.enqueue(new Uint8Array(1_000_000))
        },
      })
      await expect(subject.environment.files.write('/tmp/endless', endless)).rejects.toMatchObject({
        code: 'disk_full',
      })
      expect(sent).toBeLessThan(700)
      await subject.environment.files.remove('/tmp/endless')
    }, 60_000)

    test('keep their mode when they are replaced', async () => {
      await shell('echo a > /tmp/run.sh; chmod 755 /tmp/run.sh')
      await subject.environment.files.write('/tmp/run.sh', Buffer.from('#!/bin/sh\necho ran\n'))
      expect((await shell('/tmp/run.sh')).stdout).toBe('ran\n')
    })

    test('that are no regular files are refused at once', async () => {
      await shell('mkfifo /tmp/fifo; mkdir /tmp/directory; ln -s /tmp/nowhere /tmp/dangling')
      const refused = (path: string) =>
        subject.environment.files.read(path).then(
          () => 'read',
          error => error.code,
        )
      const paths = [
        '/tmp/fifo',
        '/tmp/directory',
        '/dev/zero',
        '/dev/tty',
        '/tmp/dangling',
        '/tmp/none',
        '/tmp/fifo/x',
      ]
      expect(await Promise.all(paths.map(refused))).toEqual([
        ...Array<string>(4).fill('invalid_request'),
        ...Array<string>(3).fill('file_not_found'),
      ])
      await expect(subject.environment.files.write('/tmp/fifo', Buffer.from('x'))).rejects.toMatchObject({
        code: 'invalid_request',
      })
    })

    test('are seen through links only inside: regression', async () => {
      await subject.environment.files.write('/etc/passwd-own', Buffer.from('inside'))
      await shell(
        'ln -sf /etc/passwd-own /tmp/link; ln -sf ../../../../../../etc/passwd-own /tmp/up; ln -sfn / /tmp/root',
      )
      for (const path of ['/tmp/link', '/tmp/up', '/tmp/root/etc/passwd-own']) {
        expect(await new Response((await subject.environment.files.read(path)).body).text()).toBe('inside')
      }
    })

    test('are listed, described, renamed and removed', async () => {
      const { files } = subject.environment
      expect([await files.makeDirectory('/opt/a/b'), await files.makeDirectory('/opt/a/b')]).toEqual([true, false])
      await files.write('/opt/a/f', Buffer.from('123'))
      await shell('ln -s f /opt/a/l')
      const names = async (depth: number) => (await files.list('/opt', depth)).map(({ path }) => path)
      expect(await names(1)).toEqual(['/opt/a'])
      expect(await names(2)).toEqual(['/opt/a', '/opt/a/b', '/opt/a/f', '/opt/a/l'])
      expect(await files.info('/opt/a/f')).toMatchObject({
        name: 'f',
        type: 'file',
        size: 3,
        mode: 0o644,
        permissions: '-rw-r--r--',
        owner: 'root',
      })
      expect(await files.info('/opt/a/l')).toMatchObject({ type: 'file', symlinkTarget: 'f' })
      await files.rename('/opt/a/f', '/opt/new/g')
      expect([await files.info('/opt/a/f'), (await files.info('/opt/new/g'))?.size]).toEqual([undefined, 3])
      await files.remove('/opt/a')
      await expect(files.remove('/opt/a')).rejects.toMatchObject({ code: 'file_not_found' })
      await expect(files.list('/opt/new/g')).rejects.toMatchObject({ code: 'invalid_request' })
    })
  })
}
