import { beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { useApp } from '../support/app.ts'
import { gitUrl, insideOf, serveGit } from '../support/git-server.ts'
import { processIds, readText } from '../support/leftovers.ts'
import { until } from '../support/until.ts'

const app = useApp()
const TOKEN = `token-${crypto.randomUUID()}`
let id = ''
beforeAll(async () => {
  id = await app.sandbox({ envs: { OF_SANDBOX: 'yes' } })
  await serveGit(insideOf(app, id), TOKEN)
})

let count = 0
const newPath = () => `/tmp/clones/${++count}`
const clone = (fields: object) => app.ask('POST', `/v1/sandboxes/${id}/git/clone`, fields)
const git = async (path: string, args: string) => (await app.exec(id, `git -C ${path} ${args}`)).stdout.trim()

describe('clone', () => {
  test('of a public repository goes to /home/user/repo and tells the branch', async () => {
    const { status, body } = await clone({ url: `${gitUrl}/public.git` })
    expect({ status, body }).toEqual({ status: 200, body: { path: '/home/user/repo', branch: 'main' } })
    expect(await git('/home/user/repo', 'rev-list --count HEAD')).toBe('3')
    expect((await app.exec(id, 'cat repo/file')).stdout).toBe('3\n')
  })

  test('goes to the path that is asked for, parents made', async () => {
    const { body } = await clone({ url: `${gitUrl}/public.git`, path: '/opt/a b/c' })
    expect(body).toEqual({ path: '/opt/a b/c', branch: 'main' })
    expect((await app.exec(id, 'cat "/opt/a b/c/file"')).stdout).toBe('3\n')
  })

  test('of depth 1 has one commit', async () => {
    const path = newPath()
    expect((await clone({ url: `${gitUrl}/public.git`, path, depth: 1 })).status).toBe(200)
    expect(await git(path, 'rev-list --count HEAD')).toBe('1')
    expect(await git(path, 'rev-parse --is-shallow-repository')).toBe('true')
  })

  test('of a branch', async () => {
    const path = newPath()
    expect((await clone({ url: `${gitUrl}/public.git`, path, branch: 'side' })).body).toEqual({ path, branch: 'side' })
    expect((await app.exec(id, `cat ${path}/file`)).stdout).toBe('side\n')
  })

  test('of a private repository with its token', async () => {
    const path = newPath()
    const { status, body } = await clone({ url: `${gitUrl}/private/secret.git`, path, token: TOKEN })
    expect({ status, body }).toEqual({ status: 200, body: { path, branch: 'main' } })
    expect(await git(path, 'rev-list --count HEAD')).toBe('3')
  })

  test('of an empty repository tells the branch that is to come', async () => {
    const path = newPath()
    expect((await clone({ url: `${gitUrl}/empty.git`, path })).body).toEqual({ path, branch: 'trunk' })
  })
})

describe('a failure is 400 git_clone_failed with git’s own words', () => {
  const failures: [string, () => object, RegExp][] = [
    ['a wrong token', () => ({ url: `${gitUrl}/private/secret.git`, token: 'wrong' }), /Authentication failed/],
    ['no token', () => ({ url: `${gitUrl}/private/secret.git` }), /could not read Username|terminal prompts disabled/],
    ['no such repository', () => ({ url: `${gitUrl}/none.git` }), /not found/],
    ['no such branch', () => ({ url: `${gitUrl}/public.git`, branch: 'none' }), /Remote branch none not found/],
    ['nobody listens', () => ({ url: 'http://localhost:9/x.git' }), /[Ff]ailed to connect|refused/],
    ['a protocol that git does not know', () => ({ url: 'nothing://x/y' }), /nothing/],
    ['an option for a URL', () => ({ url: '--upload-pack=touch /tmp/owned' }), /./],
    ['a command for a URL', () => ({ url: 'ext::sh -c "touch /tmp/owned"' }), /ext/],
    ['an option for a branch', () => ({ url: `${gitUrl}/public.git`, branch: '--upload-pack=touch /tmp/owned' }), /./],
    ['a path that is taken', () => ({ url: `${gitUrl}/public.git`, path: '/etc' }), /already exists/],
  ]
  for (const [name, fields, words] of failures) {
    test(name, async () => {
      const { status, body } = await clone({ path: newPath(), ...fields() })
      expect({ status, code: body.error.code }).toEqual({ status: 400, code: 'git_clone_failed' })
      expect(body.message).toMatch(words)
    })
  }

  test('and nothing that a URL or branch said was run', async () => {
    expect((await app.exec(id, 'ls /tmp/owned')).exitCode).not.toBe(0)
  })

  test('a directory of a failed clone does not stay in the way', async () => {
    const path = newPath()
    await clone({ url: `${gitUrl}/private/secret.git`, path, token: 'wrong' })
    expect((await clone({ url: `${gitUrl}/private/secret.git`, path, token: TOKEN })).status).toBe(200)
  })
})

describe('a clone that does not come to its end', () => {
  /** A server that takes connections and says nothing. */
  const silent = 'http://127.0.0.1:9418/x.git'
  beforeAll(async () => {
    const serve = 'import socket, time; s = socket.create_server(("127.0.0.1", 9418)); time.sleep(100000)'
    await app.exec(id, `nohup python3 -c '${serve}' >/dev/null 2>&1 & mkdir -p /srv/half`)
    await until(async () => (await app.exec(id, 'exec 3<>/dev/tcp/127.0.0.1/9418')).exitCode === 0)
  })
  const begin = () => {
    const gone = new AbortController()
    const body = { url: silent, path: '/srv/half/repo' }
    const asking = app.request('POST', `/v1/sandboxes/${id}/git/clone`, { body, signal: gone.signal })
    asking.catch(() => {})
    return { end: () => gone.abort() }
  }
  const there = async () => (await app.exec(id, 'ls -A /srv/half')).stdout

  test('leaves nothing when its client goes, and the next one goes to the same place', async () => {
    const { end } = begin()
    await until(async () => (await there()) !== '')
    end()
    await until(async () => (await there()) === '')
    expect((await clone({ url: `${gitUrl}/public.git`, path: '/srv/half/repo' })).status).toBe(200)
    expect(await there()).toBe('repo\n')
  })

  test('that was killed is cleaned up by the next one, and one that is under way is not', async () => {
    await app.exec(id, 'rm -rf /srv/half/repo; mkdir -p /srv/half/.threadbox-clone-dead/.git')
    const { end } = begin()
    await until(async () => (await there()).split('\n').length === 2 && !(await there()).includes('dead'))
    const underWay = await there()
    expect((await clone({ url: `${gitUrl}/public.git`, path: '/srv/half/other' })).status).toBe(200)
    expect(await there()).toBe(`${underWay}other\n`)
    end()
    await until(async () => (await there()) === 'other\n')
  })

  test('an empty directory, or a link to one, is cloned into; one with files stays as it is', async () => {
    await app.exec(
      id,
      'mkdir -p /srv/into/empty /srv/into/full /srv/into/else; cd /srv/into; touch full/mine; ln -s else link',
    )
    const into = async (name: string) => await clone({ url: `${gitUrl}/public.git`, path: `/srv/into/${name}` })
    expect([(await into('empty')).status, (await into('link')).status]).toEqual([200, 200])
    expect((await into('full')).body.error).toMatchObject({
      code: 'git_clone_failed',
      message: "fatal: destination path '/srv/into/full' already exists and is not an empty directory.",
    })
    const { stdout } = await app.exec(id, 'cd /srv/into; cat empty/file else/file; readlink link; ls -A full .')
    expect(stdout).toBe('3\n3\nelse\n.:\nelse\nempty\nfull\nlink\n\nfull:\nmine\n')
  })
})

describe('a token', () => {
  test('is in no process’s arguments while git runs', async () => {
    const seen = new Set<string>()
    let cloning = true
    const watching = (async () => {
      for (; cloning; await Bun.sleep(0)) {
        for (const pid of processIds()) {
          const line = readText(`/proc/${pid}/cmdline`)
          if (line.includes('git')) seen.add(line.replaceAll('\0', ' '))
        }
      }
    })()
    for (let n = 0; n < 5; n++) {
      const { status } = await clone({ url: `${gitUrl}/private/secret.git`, path: newPath(), token: TOKEN })
      expect(status).toBe(200)
    }
    cloning = false
    await watching
    const lines = [...seen].filter(line => !line.includes('git-server.py'))
    expect(lines.some(line => line.includes('clone'))).toBe(true)
    expect(lines.filter(line => line.includes(TOKEN))).toEqual([])
  })

  test('is nowhere in the clone, in git’s configuration, or in later environments', async () => {
    const path = newPath()
    await clone({ url: `${gitUrl}/private/secret.git`, path, token: TOKEN })
    expect(await git(path, 'remote get-url origin')).toBe(`${gitUrl}/private/secret.git`)
    expect((await app.exec(id, `grep -rl ${TOKEN} ${path} /home /root /etc 2>/dev/null`)).stdout).toBe('')
    expect((await app.exec(id, 'env; git config --list --show-origin')).stdout).not.toContain(TOKEN)
    const own = 'grep -lz $0 /proc/[0-9]*/environ 2>/dev/null | wc -l'
    expect((await app.exec(id, `bash -c '${own}' ${TOKEN}`)).stdout).toBe('0\n')
    expect(await git(path, 'fetch')).not.toContain(TOKEN)
    expect((await app.exec(id, `GIT_TERMINAL_PROMPT=0 git -C ${path} fetch`)).exitCode).not.toBe(0)
  })

  test('is in no answer and no log', async () => {
    const { body } = await clone({ url: `${gitUrl}/none-${TOKEN}.git`, path: newPath(), token: TOKEN })
    expect(JSON.stringify(body)).not.toContain(TOKEN)
    expect(app.log.join('\n')).not.toContain(TOKEN)
  })

  test('is nowhere in the data directory', async () => {
    for (const file of readdirSync(app.directory).filter(name => name.startsWith('threadbox.db'))) {
      expect(await Bun.file(`${app.directory}/${file}`).text()).not.toContain(TOKEN)
    }
  })
})

test('clones side by side', async () => {
  const answers = await Promise.all(
    Array.from({ length: 5 }, () => clone({ url: `${gitUrl}/public.git`, path: newPath() })),
  )
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
})
