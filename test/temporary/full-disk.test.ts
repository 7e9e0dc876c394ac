import { describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { leftovers } from '../support/leftovers.ts'
import { executable } from '../support/server.ts'
import { useOneOffs } from './support.ts'

const oneOffs = useOneOffs()

/** A file system of so many MiB. */
async function withDisk(sizeMb: number, work: (path: string) => Promise<void>) {
  const path = join(oneOffs.directory, 'disk')
  mkdirSync(path)
  await Bun.$`mount -t tmpfs -o size=${sizeMb}m tmpfs ${path}`
  try {
    await work(path)
    expect([readdirSync(path), await leftovers(`${path}/`)]).toEqual([[], []])
  } finally {
    await Bun.$`umount -l ${path}`
    rmdirSync(path)
  }
}

describe.if(process.getuid?.() === 0)('a full disk', () => {
  test('keeps a sandbox from being made, and is told', async () => {
    await withDisk(20, async path => {
      const { code, stderr } = await oneOffs.run(['exec', '--data-dir', path, '--', 'echo hi'])
      expect([code, stderr]).toEqual([125, expect.stringContaining('no space left')])
    })
  })

  test('ends what runs, says so, and keeps nothing from being removed', async () => {
    await withDisk(400, async path => {
      const child = oneOffs.spawn(['exec', '--data-dir', path, '--', 'echo up; sleep 7461'])
      await child.stdout.getReader().read()
      await Bun.$`head -c 500M /dev/zero > ${join(path, 'filler')}`.nothrow().quiet()
      const [code, stderr] = await Promise.all([child.exited, child.stderr.text()])
      expect([code, stderr]).toEqual([125, expect.stringContaining('disk')])
      rmSync(join(path, 'filler'))
    })
  })

  test('below the output fails the job', async () => {
    const child = Bun.spawn(['sh', '-c', '"$0" exec -- echo hi >/dev/full', executable], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    expect([await child.exited, await child.stderr.text()]).toEqual([125, expect.stringContaining('no space left')])
  })
})
