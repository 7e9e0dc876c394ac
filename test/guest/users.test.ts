import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Environment } from '../../src/plugin-api/index.ts'
import { openTestSandbox, type TestSandbox } from '../support/sandbox.ts'
import { patiently } from '../support/server.ts'

patiently()

let sandbox: TestSandbox
let environment: Environment
beforeAll(async () => {
  sandbox = await openTestSandbox()
  environment = sandbox.environment
})
afterAll(() => sandbox.close())

/** What a process of a user prints. */
async function as(user: string, command: string): Promise<string> {
  const processes = environment.processes!
  const { pid } = await processes.start({ command: ['/bin/bash', '-l', '-c', command], user, cwd: '/home/user' })
  let text = ''
  for (let at = 0; ; ) {
    const { offset, pieces, exit } = await processes.read(pid, at, { wait: true })
    text += pieces.map(({ bytes }) => Buffer.from(bytes).toString()).join('')
    at = offset + pieces.reduce((sum, { bytes }) => sum + bytes.byteLength, 0)
    if (exit) return text
  }
}

const isRoot = process.getuid?.() === 0

test('a process has its user’s name and home, and is that user where there are users', async () => {
  const name = isRoot ? 'user' : 'root'
  expect(await as('user', 'echo $USER $LOGNAME $HOME; whoami')).toBe(`user user /home/user\n${name}\n`)
  expect(await as('root', 'echo $USER $HOME; whoami')).toBe('root /root\nroot\n')
})

test('what a user makes belongs to the user, whose home it is', async () => {
  await as('user', 'echo x > made; mkdir -p /var/made')
  const owner = isRoot ? 'user' : 'root'
  expect(await sandbox.shell('stat -c %U /home/user/made /var/made /home/user')).toBe(`${owner}\n`.repeat(3))
})

test('sudo makes a user root, with all that root may', async () => {
  if (!isRoot) return
  expect(await as('user', 'sudo whoami; sudo -u user whoami; sudo -E WORD=word sh -c "echo \\$WORD \\$HOME"')).toBe(
    'root\nuser\nword /root\n',
  )
  expect(await as('user', 'sudo install -o games -m 600 /dev/null /etc/owned && sudo stat -c %U:%a /etc/owned')).toBe(
    'games:600\n',
  )
  expect(await as('user', 'sudo sh -c "exit 7"; echo $?; sudo 2>&1; echo $?')).toMatch(/^7\nusage.*\n1\n$/)
})

test('a file that is written for a user belongs to the user, with the directories that were made for it', async () => {
  const { files } = environment
  await files.write('/srv/a/b/c', Buffer.from('x'), undefined, { owner: 'user' })
  await files.makeDirectory('/srv/d/e', { owner: 'user' })
  const owner = isRoot ? 'user' : 'root'
  const shown = await sandbox.shell('stat -c "%U %a" /srv /srv/a /srv/a/b /srv/a/b/c /srv/d /srv/d/e')
  expect(shown).toBe(`root 755\n${`${owner} 755\n`.repeat(2)}${owner} 644\n${`${owner} 755\n`.repeat(2)}`)
})

test('attributes are kept with a file until it is written anew', async () => {
  const { files } = environment
  const write = (attributes?: Record<string, string>) =>
    files.write('/home/user/kept', Buffer.from('x'), undefined, attributes && { attributes })
  const kept = async () => (await files.info('/home/user/kept', { details: true }))?.attributes
  await write({ one: 'first', 'two.2': '', long: 'x'.repeat(3000) })
  expect(await kept()).toEqual({ one: 'first', 'two.2': '', long: 'x'.repeat(3000) })
  expect(
    (await files.list('/home/user', 1, { details: true })).find(({ name }) => name === 'kept')?.attributes?.one,
  ).toBe('first')
  await write({ one: 'second' })
  expect(await kept()).toEqual({ one: 'second' })
  await write()
  expect(await kept()).toEqual({})
  expect(await files.info('/home/user/kept')).not.toHaveProperty('attributes')
})

test('a link’s details say where it leads', async () => {
  await sandbox.shell('cd /home/user; touch target; ln -s target link; ln -s nowhere broken')
  const details = (path: string) => environment.files.info(path, { details: true })
  expect(await details('/home/user/link')).toMatchObject({
    symlinkTarget: 'target',
    resolvedTarget: '/home/user/target',
  })
  expect(await details('/home/user/broken')).not.toHaveProperty('resolvedTarget')
})
