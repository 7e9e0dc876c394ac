import type { Kit } from './kit.ts'
import type { BackendSubject } from './subject.ts'
import { until } from './until.ts'

/** Tests file operations, and that they stay inside. */
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
      const { files } = subject.environment
      await files.write('/srv/full/kept', Buffer.from('what was there'))
      await expect(files.write('/srv/full/kept', endless)).rejects.toMatchObject({ code: 'disk_full' })
      expect(sent).toBeLessThan(700)
      expect((await shell('cat /srv/full/kept; ls -A /srv/full')).stdout).toBe('what was therekept\n')
    }, 60_000)

    test('stay as they were, with nothing beside them, when their sender gives up or breaks', async () => {
      const { files } = subject.environment
      await files.write('/srv/given-up/kept', Buffer.from('what was there'))
      const seen = async () => (await shell('cat /srv/given-up/*; ls -A /srv/given-up')).stdout
      for (const way of ['abort', 'error']) {
        for (const name of ['kept', 'new']) {
          const gone = new AbortController()
          let pieces = 0
          const body = new ReadableStream<Uint8Array>({
            pull(controller) {
              pieces += 1
              if (pieces <= 12) return controller.enqueue(new Uint8Array(1_000_000))
              if (way === 'error') return controller.error(new Error('gone'))
              gone.abort(new Error('gone'))
            },
          })
          await expect(files.write(`/srv/given-up/${name}`, body, gone.signal)).rejects.toMatchObject({
            message: 'gone',
          })
          await until(async () => (await seen()) === 'what was therekept\n')
        }
      }
    })

    test('stay as they were, with nothing beside them, when their environment ends meanwhile', async () => {
      const { files } = subject.environment
      await files.write('/srv/ended/kept', Buffer.from('what was there'))
      const [taken, gone] = [Promise.withResolvers<void>(), new AbortController()]
      let pieces = 0
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          pieces += 1
          if (pieces <= 12) return controller.enqueue(new Uint8Array(1_000_000))
          taken.resolve()
        },
      })
      const writing = files.write('/srv/ended/kept', body, gone.signal).catch(() => 'given up')
      await taken.promise
      await subject.environment.pause?.()
      gone.abort(new Error('gone'))
      const seen = async () => (await shell('cat /srv/ended/kept; ls -A /srv/ended')).stdout
      await until(async () => (await seen()) === 'what was therekept\n')
      await writing
    })

    test('that are replaced are whole for who reads them meanwhile', async () => {
      const { files } = subject.environment
      const [old, fresh] = ['a', 'b'].map(letter => Buffer.alloc(300_000, letter))
      if (!old || !fresh) throw new Error('unreachable')
      await files.write('/srv/whole', old)
      const reading = shell(
        'for i in $(seq 50); do tr -d "\n" </srv/whole | tr -s ab; echo " $(wc -c </srv/whole)"; done | sort -u',
      )
      for (let round = 0; round < 10; round++) await files.write('/srv/whole', round % 2 === 0 ? fresh : old)
      const lines = (await reading).stdout.trim().split('\n')
      expect(lines.filter(line => !/^[ab] 300000$/.test(line))).toEqual([])
    })

    test('keep their owner, their links and their other names when they are replaced', async () => {
      const { files } = subject.environment
      // Where there is one user id alone, the file stays root's.
      const { stdout: owner } = await shell(
        'mkdir -p /srv/own/in; cd /srv/own; echo a >in/f; chown 7:8 in/f 2>/dev/null; chmod 640 in/f; ln -s in/f l; echo a >h; ln h h2; ln -s in/new d; stat -c "%u:%g %a" in/f',
      )
      expect(owner).toMatch(/^(7:8|0:0) 640\n$/)
      for (const name of ['l', 'h', 'd']) await files.write(`/srv/own/${name}`, Buffer.from('fresh\n'))
      const { stdout } = await shell(
        'cd /srv/own; stat -c "%u:%g %a" in/f; cat in/f l h h2 in/new; readlink l d; stat -c %h h; ls -A . in',
      )
      expect(stdout).toBe(`${owner}${'fresh\n'.repeat(5)}in/f\nin/new\n2\n.:\nd\nh\nh2\nin\nl\n\nin:\nf\nnew\n`)
    })

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
