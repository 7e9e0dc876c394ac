import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { useOneOffs } from './support.ts'

const oneOffs = useOneOffs()

/** A repository as plain files: git reads it over HTTP without a program behind it. */
async function serveRepository(password?: string): Promise<AsyncDisposable & { url: string; place: string }> {
  const at = join(oneOffs.directory, crypto.randomUUID())
  const identity = '-c user.name=a -c user.email=a@b -c init.defaultBranch=main'.split(' ')
  await Bun.$`git ${identity} init -q ${at}/work && cd ${at}/work && echo hello > greeting && git add . && git ${identity} commit -qm first`
  await Bun.$`git clone -q --bare ${at}/work ${at}/repo.git && git -C ${at}/repo.git update-server-info`.quiet()
  const server = Bun.serve({
    // Not one that NO_PROXY names.
    hostname: '127.0.0.2',
    port: 0,
    async fetch(request) {
      const given = atob((request.headers.get('authorization') ?? '').replace('Basic ', ''))
      if (password && !given.endsWith(`:${password}`)) {
        return new Response('who?', { status: 401, headers: { 'www-authenticate': 'Basic realm="git"' } })
      }
      const file = Bun.file(join(at, new URL(request.url).pathname))
      return (await file.exists()) ? new Response(file) : new Response('no', { status: 404 })
    },
  })
  const place = `127.0.0.2:${server.port}`
  return { url: `http://${place}/repo.git`, place, [Symbol.asyncDispose]: () => server.stop(true) }
}

const agentFor = (place: string) => {
  const file = join(oneOffs.directory, 'cloner.json')
  const agent = {
    slug: 'cloner',
    options: { networkAllowOut: [place] },
    sandbox: { setup: ['cat greeting extra > both'] },
  }
  writeFileSync(file, JSON.stringify(agent))
  return ['--agent', file, '--network-private', place]
}

test('a repository is cloned, files go into it, then set-up and command run there', async () => {
  await using repository = await serveRepository()
  writeFileSync(join(oneOffs.directory, 'extra'), 'extra\n')
  const args = [
    ...agentFor(repository.place),
    '--clone',
    repository.url,
    '--file',
    'extra=extra',
    '--',
    'pwd; cat both',
  ]
  const result = await oneOffs.run(['exec', ...args])
  expect(result).toEqual({ code: 0, stdout: '/home/user/repo\nhello\nextra\n', stderr: '' })
})

test('a private one is cloned with the token, which is nowhere inside', async () => {
  await using repository = await serveRepository('s3cret')
  writeFileSync(join(oneOffs.directory, 'extra'), '')
  const args = [...agentFor(repository.place), '--clone', repository.url, '--file', 'extra=extra']
  const env = { THREADBOX_GIT_TOKEN: 's3cret' }
  const { code, stdout } = await oneOffs.run(
    ['exec', ...args, '--', 'cat greeting; env | cat - .git/config | grep -c s3cret'],
    { env },
  )
  expect([code, stdout]).toEqual([1, 'hello\n0\n'])
  const refused = await oneOffs.run(['exec', ...args, '--', 'true'])
  expect([refused.code, refused.stderr]).toEqual([
    125,
    expect.stringMatching(/^threadbox: .*(Authentication|could not read)/s),
  ])
})

test('one that the network does not allow is refused, and says so', async () => {
  const args = ['--clone', 'http://127.0.0.2:1/repo.git', '--', 'true']
  const { code, stderr } = await oneOffs.run(['exec', ...args])
  expect(code).toBe(125)
  expect(stderr).toMatch(/^threadbox: .*its address is not public/)
  const verbose = await oneOffs.run(['exec', '--verbose', ...args])
  expect(verbose.stderr).toMatch(
    /^\S+Z network env_\S+: refused 127\.0\.0\.2 port 1: its address is not public\nthreadbox: /,
  )
})
