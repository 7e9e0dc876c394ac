import { expect, test } from 'bun:test'
import { globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { processesNamed, tracesOf } from '../support/leftovers.ts'
import { patiently, Server, startServer, temporaryDirectory } from '../support/server.ts'

patiently()

const isRoot = process.getuid?.() === 0
const newWord = () => `9${Date.now()}${Math.floor(Math.random() * 1e6)}`
const sleeping = (word: string) => `sleep ${word} >/dev/null 2>&1 &`

test('a copy of a data directory runs beside the one that it was made from, and neither touches the other', async () => {
  const first = await startServer({ flags: ['--spares', '0'] })
  const id = await first.sandbox()
  const [word, copied] = [newWord(), newWord()]
  await first.exec(id, `echo original >f; sync; ${sleeping(word)}`)
  const [environment = ''] = readdirSync(join(first.dataDirectory, 'sandboxes'))
  const second = new Server({ dataDirectory: join(temporaryDirectory(), 'copy') })
  // Of a running server's, with its sockets, pids and a jail that runs.
  Bun.spawnSync(['cp', '-a', '--sparse=always', first.dataDirectory, second.dataDirectory])
  await second.start()
  try {
    expect((await second.exec(id, `cat f; echo copy >f; cat f; ${sleeping(copied)}`)).stdout).toBe('original\ncopy\n')
    expect((await first.exec(id, 'cat f')).stdout).toBe('original\n')
    expect([processesNamed(word).length, processesNamed(copied).length]).toEqual([1, 1])
    await first.kill()
    await first.start()
    await second.kill()
    await second.start()
    expect((await first.exec(id, 'cat f')).stdout).toBe('original\n')
    expect((await second.exec(id, 'cat f')).stdout).toBe('copy\n')
    expect([processesNamed(word).length, processesNamed(copied).length]).toEqual([1, 1])
    expect((await second.ask('DELETE', `/v1/sandboxes/${id}`)).status).toBe(204)
    expect([processesNamed(word).length, processesNamed(copied).length]).toEqual([1, 0])
    expect((await first.exec(id, 'cat f')).stdout).toBe('original\n')
    if (isRoot) expect(tracesOf(environment).join('\n')).not.toContain(second.dataDirectory)
  } finally {
    await first.ask('DELETE', `/v1/sandboxes/${id}`)
    await second.close()
    await first.close()
    rmSync(dirname(second.dataDirectory), { recursive: true, force: true })
  }
})

test('a data directory that was moved has its sandboxes, with their bases', async () => {
  const parent = temporaryDirectory()
  const [before, after] = [join(parent, 'before'), join(parent, 'after')]
  const old = await startServer({ dataDirectory: before })
  const id = await old.sandbox()
  await old.exec(id, 'echo kept >f; sync')
  await old.stop()
  Bun.spawnSync(['mv', before, after])
  const moved = await startServer({ dataDirectory: after })
  try {
    expect((await moved.exec(id, 'cat f; ls /usr/bin | head -c 1 | wc -c')).stdout).toBe('kept\n1\n')
  } finally {
    await moved.close()
    rmSync(parent, { recursive: true })
  }
})

if (isRoot)
  test('a jail that an earlier version started is found again and limited by the cgroups of this one', async () => {
    const server = await startServer({ flags: ['--spares', '0'] })
    try {
      const id = await server.sandbox()
      const word = newWord()
      await server.exec(id, sleeping(word))
      const [environment = ''] = readdirSync(join(server.dataDirectory, 'sandboxes'))
      await server.kill()
      // As the earlier versions left it: the pid alone, and cgroups of the bare id.
      const pid = join(server.dataDirectory, 'sandboxes', environment, 'pid')
      writeFileSync(pid, `${readFileSync(pid, 'utf8').split(' ')[0]}\n`)
      const now = globSync(`/sys/fs/cgroup/{,*/}threadbox/*.${environment}`)
      expect(now.length).toBeGreaterThan(0)
      for (const cgroup of now) {
        const former = join(dirname(cgroup), environment)
        mkdirSync(former)
        for (const each of readFileSync(join(cgroup, 'cgroup.procs'), 'utf8').trim().split('\n')) {
          writeFileSync(join(former, 'cgroup.procs'), each)
        }
        Bun.spawnSync(['rmdir', cgroup])
      }
      await server.start()
      expect((await server.exec(id, 'echo on')).stdout).toBe('on\n')
      expect(processesNamed(word).length).toBe(1)
      const inside = readFileSync(`/proc/${processesNamed(word)[0]}/cgroup`, 'utf8')
      expect(inside).toContain(`.${environment}`)
      expect(inside).not.toContain(`/${environment}`)
      expect(globSync(`/sys/fs/cgroup/{,*/}threadbox/${environment}`)).toEqual([])
    } finally {
      await server.close()
    }
  })
