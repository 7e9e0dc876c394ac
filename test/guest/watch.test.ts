import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Environment, FileChange } from '../../src/plugin-api/index.ts'
import { openTestSandbox, type TestSandbox } from '../support/sandbox.ts'
import { patiently } from '../support/server.ts'
import { until } from '../support/until.ts'

patiently()

let sandbox: TestSandbox
let files: Environment['files']
beforeAll(async () => {
  sandbox = await openTestSandbox()
  files = sandbox.environment.files
})
afterAll(() => sandbox.close())

/** Does something while a new directory is watched. Returns the changes up to that of the file `last`. */
async function watching(isRecursive: boolean, act: (root: string) => Promise<unknown>): Promise<string[]> {
  const root = `/home/user/${crypto.randomUUID()}`
  await files.makeDirectory(root)
  const end = new AbortController()
  const seen: FileChange[] = []
  const changes = await files.watch!(root, { isRecursive, signal: end.signal })
  const reading = (async () => {
    for await (const some of changes) seen.push(...some)
  })()
  await act(root)
  await sandbox.shell(`touch ${root}/last 2>/dev/null`)
  await until(() => seen.some(({ name, type }) => name === 'last' || (name === '.' && type === 'remove')))
  end.abort()
  await reading
  return seen.filter(({ name }) => name !== 'last').map(({ type, name }) => `${type} ${name}`)
}

test('each kind of change is seen once, in its order', async () => {
  const seen = await watching(false, root =>
    sandbox.shell(`cd ${root}; mkdir d; echo x > a; chmod 600 a; mv a b; mkdir d/e; rm b; mv d ..; mv ../d f`),
  )
  expect(seen).toEqual([
    'create d',
    'create a',
    'write a',
    'chmod a',
    'rename a',
    'create b',
    'remove b',
    'rename d',
    'create f',
  ])
})

test('a file that the server writes is created, then written, and nothing of its draft is seen', async () => {
  const seen = await watching(false, async root => {
    await files.write(`${root}/a`, Buffer.from('one'))
    await files.write(`${root}/a`, Buffer.from('two'))
  })
  expect(seen).toEqual(['create a', 'write a', 'write a'])
})

test('below a directory all is seen that was made before its watch began, and after it was moved', async () => {
  const seen = await watching(true, root =>
    sandbox.shell(`cd ${root}; mkdir -p n/m/o; echo 1 > n/m/o/f; mv n q; echo 2 >> q/m/o/f; rm -r q`),
  )
  expect(seen.filter(each => each.startsWith('create'))).toEqual([
    'create n',
    'create n/m',
    'create n/m/o',
    'create n/m/o/f',
    'create q',
  ])
  expect(seen.slice(-6)).toEqual([
    'create q',
    'write q/m/o/f',
    'remove q/m/o/f',
    'remove q/m/o',
    'remove q/m',
    'remove q',
  ])
})

test('what was moved out of the tree is no longer seen', async () => {
  const seen = await watching(true, root => sandbox.shell(`mkdir ${root}/a; mv ${root}/a /tmp/away; touch /tmp/away/b`))
  expect(seen).toEqual(['create a', 'rename a'])
})

test('a watch ends with its directory, and there is none of a file or of nothing', async () => {
  expect(await watching(true, root => sandbox.shell(`rmdir ${root}`))).toEqual(['remove .'])
  const options = { isRecursive: false, signal: new AbortController().signal }
  await expect(files.watch!('/etc/passwd', options)).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(files.watch!('/none', options)).rejects.toMatchObject({ code: 'file_not_found' })
  await expect(files.watch!('/proc/1', options)).rejects.toMatchObject({ code: 'invalid_request' })
})

test('changes that nobody reads are bounded: the watch fails', async () => {
  const root = '/home/user/flood'
  await files.makeDirectory(root)
  const changes = await files.watch!(root, { isRecursive: false, signal: new AbortController().signal })
  const touched = `for (1..12000) { $n = ("n" x 200) . ($_ % 9); open F, ">", $n; close F; unlink $n }`
  await sandbox.shell(`cd ${root} && perl -e '${touched}'`)
  const reading = (async () => {
    for await (const _ of changes);
  })()
  await expect(reading).rejects.toThrow(/some changes are lost/)
})

test('a program has so many watches, and gives them back', async () => {
  const end = new AbortController()
  const open = () => files.watch!('/home/user', { isRecursive: false, signal: end.signal })
  const all = await Promise.allSettled(Array.from({ length: 40 }, open))
  expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(32)
  end.abort()
  const again = new AbortController()
  await until(async () => {
    const watch = files.watch!('/home/user', { isRecursive: false, signal: again.signal })
    return await watch.then(
      () => true,
      () => false,
    )
  })
  again.abort()
})
