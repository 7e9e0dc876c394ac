import { afterAll, expect, test } from 'bun:test'
import { chownSync, copyFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { command, executable, patiently, startServer, temporaryDirectory } from '../support/server.ts'

patiently()
const scratch = temporaryDirectory()
afterAll(() => rmSync(scratch, { recursive: true, force: true }))
const program = join(scratch, 'threadbox')
copyFileSync(executable, program)

/** A command line of an ordinary user, and a directory that is that user's own. */
function userOf(id: number) {
  const home = join(scratch, `${id}`)
  mkdirSync(home)
  chownSync(home, id, id)
  return {
    home,
    command: ['setpriv', `--reuid=${id}`, `--regid=${id}`, '--clear-groups', program],
    env: { HOME: home },
  }
}

test('the backup of an ordinary user is restored by another one, with links, removed files and what runs at the time', async () => {
  const [one, other] = [userOf(54_321), userOf(54_322)]
  const server = await startServer({ ...one, dataDirectory: join(one.home, 'data') })
  const id = await server.sandbox()
  await server.exec(
    id,
    'echo kept >a; ln a b; chmod 600 a; rm -rf /var/mail; (i=0; while :; do i=$((i+1)); echo $i >>log; done) >/dev/null 2>&1 &',
  )
  const file = join(one.home, 'one.tar.zst')
  const made = await command(['backup', 'create', file, '--data-dir', server.dataDirectory], one)
  expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/frozen for \d+ ms/) })
  expect(
    (await server.exec(id, 'wc -l <log >before; until [ $(wc -l <log) -gt $(cat before) ]; do :; done')).exitCode,
  ).toBe(0)
  await server.close()
  copyFileSync(file, join(other.home, 'one.tar.zst'))
  chownSync(join(other.home, 'one.tar.zst'), 54_322, 54_322)

  const data = join(other.home, 'data')
  const restored = await command(['backup', 'restore', join(other.home, 'one.tar.zst'), '--data-dir', data], other)
  expect([restored.code, restored.stderr]).toEqual([0, ''])
  await using again = await startServer({ ...other, dataDirectory: data })
  const look =
    'cat a; stat -c "%h %a %U" a b; ls /var | grep -c mail; seq $(wc -l <log) | cmp - log && echo new >>a && cat b'
  expect(await again.exec(id, look)).toMatchObject({
    stdout: 'kept\n2 600 root\n2 600 root\n0\nkept\nnew\n',
    stderr: '',
  })
})

test('a process that waits for a child of vfork, and cannot stop, does not keep a sandbox frozen, regression', async () => {
  const user = userOf(54_323)
  await using server = await startServer({ ...user, dataDirectory: join(user.home, 'data') })
  const id = await server.sandbox()
  await server.exec(
    id,
    `mkfifo never
    cat >waits.py <<'END'
import os
os.posix_spawn('/bin/true', ['true'], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, 'never', os.O_RDONLY, 0)])
END
    python3 waits.py >/dev/null 2>&1 &
    until grep -qs kernel_clone /proc/$!/wchan; do sleep 0.01; done`,
  )
  const made = await command(['backup', 'create', join(user.home, 'b'), '--data-dir', server.dataDirectory], user)
  // As long as is waited for what does not stop. A machine would have to be ten times as slow as a busy one.
  expect(Number(/frozen for (\d+) ms/.exec(made.stdout)?.[1])).toBeLessThan(5000)
})
