import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createPrivateKey } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeAuthority, makeKey, makeLeaf } from '../../src/egress/secrets/certificates.ts'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'

const TOKEN = `ghp_${'a1B2c3D4e5'.repeat(4).slice(0, 36)}`
const [internet, elsewhere] = [makeAuthority(), makeAuthority()]
const addresses: Record<string, string> = { 'git.test': '127.0.0.1', 'own.test': '127.0.0.1' }
const app = useApp(['--network-private', '127.0.0.0/8'], {}, () => [], {
  resolve: async name => [addresses[name] ?? '192.0.2.1'],
  roots: [internet.certificate],
})
const directory = mkdtempSync(join(tmpdir(), 'threadbox-clone-'))
afterAll(() => rmSync(directory, { recursive: true }))

/** What the host was told by git. */
const told: string[] = []
/** Waited for before the host answers to who has the token. */
let meanwhile: () => Promise<void> = async () => {}

/** A host of git over https, which gives its repository to who has the token. */
function serve(name: string, authority: typeof internet): Bun.Server<undefined> {
  const key = makeKey()
  const pem = key.export({ type: 'pkcs8', format: 'pem' }).toString()
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    tls: { key: pem, cert: makeLeaf(createPrivateKey(authority.key), key, name) },
    async fetch(request) {
      const given = request.headers.get('authorization') ?? ''
      told.push(Buffer.from(given.replace('Basic ', ''), 'base64').toString())
      if (told.at(-1) !== `x-access-token:${TOKEN}`)
        return new Response('', { status: 401, headers: { 'www-authenticate': 'Basic realm="git"' } })
      await meanwhile()
      // git's plain protocol: the files of a repository as they are.
      const file = Bun.file(join(directory, 'r.git', new URL(request.url).pathname.replace(/^\/r\.git\//, '')))
      return (await file.exists()) ? new Response(file) : new Response('', { status: 404 })
    },
  })
  afterAll(() => void server.stop(true))
  return server
}

const git = serve('git.test', internet)
const own = serve('own.test', elsewhere)
let id = ''
beforeAll(async () => {
  const script = `set -e; export GIT_CONFIG_GLOBAL=/dev/null
    git init -q -b main w && git -C w -c user.name=a -c user.email=a@b commit -q --allow-empty -m one
    git clone -q --bare w r.git && git -C r.git update-server-info`
  if ((await Bun.spawn(['sh', '-c', script], { cwd: directory }).exited) !== 0) throw new Error('no repository')
  id = await app.sandbox({
    networkAllowOut: [`*.test:${git.port}`, `*.test:${own.port}`, `127.0.0.0/8:${git.port}`, `127.0.0.0/8:${own.port}`],
    files: { '/srv/elsewhere.crt': elsewhere.certificate },
  })
})

let count = 0
const clone = (fields: object) =>
  app.ask('POST', `/v1/sandboxes/${id}/git/clone`, {
    url: `https://git.test:${git.port}/r.git`,
    path: `/tmp/clones/${++count}`,
    token: TOKEN,
    ...fields,
  })
const find = `grep -lsF -e '${TOKEN.slice(0, 20)}''${TOKEN.slice(20)}' /proc/[0-9]*/environ /proc/[0-9]*/cmdline; true`

test('a clone has its token from the server: it is in no process, file or answer, regression', async () => {
  let seen = 'nobody looked'
  const proxies: string[] = []
  meanwhile = async () => {
    if (proxies.length > 0) return
    seen = await app.shell(id, find)
    proxies.push(
      await app.shell(id, 'cat /proc/[0-9]*/environ | tr "\\0" "\\n" | grep -a "^https_proxy=http://clone"; true'),
    )
  }
  const { status, body } = await clone({})
  expect({ status, body }).toEqual({ status: 200, body: { path: `/tmp/clones/${count}`, branch: 'main' } })
  expect(told).toContain(`x-access-token:${TOKEN}`)
  expect(seen).toBe('')
  // It is git that was looked at.
  expect(proxies.join()).toContain('https_proxy=http://clone:')
  expect(
    await app.shell(id, `grep -rlsF '${TOKEN}' /tmp /home /root /etc /var /run; ls /tmp/.threadbox* 2>/dev/null; true`),
  ).toBe('')
  expect(app.log.join('\n')).not.toContain(TOKEN)
  const { rows } = (await app.ask('GET', '/v1/audit?action=secret.used')).body
  expect(JSON.stringify(rows)).toContain('git clone')
})

test('what git had is worth nothing after the clone, and to other programs during it, regression', async () => {
  const url = `https://git.test:${git.port}/r.git/HEAD`
  const get = (words: string) =>
    app.exec(id, `curl -s -o /dev/null -w '%{http_code} %{ssl_verify_result}' ${words} ${url}`)
  let during: { stdout: string }[] = []
  let withPass: string[] = []
  let had = ''
  meanwhile = async () => {
    if (had) return
    had = await app.shell(
      id,
      'cat /proc/[0-9]*/environ | tr "\\0" "\\n" | grep -aE "^(https_proxy=http://clone|THREADBOX_GIT_TOKEN=)" | sort -u',
    )
    const [placeholder = ''] = /THREADBOX_GIT_TOKEN=(\S+)/.exec(had)?.slice(1) ?? []
    // Other programs speak to the host itself, whose certificate is not the authority's.
    during = [await get(''), await get(`-k -u x-access-token:${placeholder}`)]
    // Who reads git's environment can use what it has to read as git does, and for nothing else.
    const [pass = ''] = /https_proxy=(\S+)/.exec(had)?.slice(1) ?? []
    const use = async (words: string, at: string) => {
      const url = `https://git.test:${git.port}${at}`
      await app.exec(id, `curl -sk -o /dev/null -x ${pass} -u x-access-token:${placeholder} ${words} ${url}`)
      return told.at(-1) ?? ''
    }
    withPass = [
      await use('', '/r.git/HEAD'),
      await use('', '/api/v1/user/repos'),
      await use('-X DELETE', '/r.git/HEAD'),
      await use('-d x', '/r.git/git-receive-pack'),
      await use('-d x', '/r.git/info/lfs/locks'),
    ]
  }
  expect((await clone({})).status).toBe(200)
  const [proxy = '', placeholder = ''] = [/https_proxy=(\S+)/, /THREADBOX_GIT_TOKEN=(\S+)/].map(
    each => each.exec(had)?.[1],
  )
  expect(placeholder).toMatch(/^ghp_/)
  expect(during.map(({ stdout }) => stdout.split(' ')[0])).toEqual(['000', '401'])
  const asGiven = `x-access-token:${placeholder}`
  expect(withPass).toEqual([`x-access-token:${TOKEN}`, asGiven, asGiven, asGiven, asGiven])
  const after = await get(`-k -x ${proxy} -u x-access-token:${placeholder}`)
  expect(after.stdout.split(' ')[0]).toBe('401')
})

test('a wrong token is git’s own failure, without the token', async () => {
  meanwhile = async () => {}
  const wrong = `${TOKEN.slice(0, -1)}x`
  const answer = await clone({ token: wrong })
  expect([codeOf(answer), answer.body.message]).toEqual([
    '400 git_clone_failed',
    expect.stringContaining('Authentication failed'),
  ])
  expect(told).toContain(`x-access-token:${wrong}`)
  expect(JSON.stringify(answer.body)).not.toMatch(/ghp_|clone:/)
})

test('a host that programs inside trust and this server does not is cloned from by git itself', async () => {
  const url = `https://own.test:${own.port}/r.git`
  const refused = await clone({ url })
  expect(codeOf(refused)).toBe('400 git_clone_failed')
  await app.shell(id, 'git config --global http.sslCAInfo /srv/elsewhere.crt')
  expect((await clone({ url })).status).toBe(200)
})

test('a program that breaks connections off while git runs does not get the token: regression', async () => {
  // The host, which takes connections and says nothing while it is held.
  let isHeld = false
  const open: Socket[] = []
  const front = createServer(socket => {
    open.push(socket.on('error', () => {}))
    if (isHeld) return
    const host = connect(git.port ?? 0, '127.0.0.1').on('error', () => {})
    open.push(host)
    socket.pipe(host).pipe(socket)
  })
  await new Promise<void>(resolve => void front.listen(0, '127.0.0.1', resolve))
  const address = front.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const attacked = await app.sandbox({ networkAllowOut: [`git.test:${port}`, `127.0.0.0/8:${port}`] })
  const hello = `\\x16\\x03\\x01\\x00\\x2f\\x01\\x00\\x00\\x2b\\x03\\x03${'a'.repeat(32)}\\x00\\x00\\x02\\x13\\x01\\x01\\x00\\x00\\x00`
  const breakOff = `
    pass=$(cat /proc/[0-9]*/environ | tr "\\0" "\\n" | grep -am1 "^https_proxy=http://clone" | sed 's,.*//,,; s,@.*,,' | tr -d "\\n" | base64 -w0)
    exec 3<>/dev/tcp/127.0.0.1/3128
    printf 'CONNECT git.test:${port} HTTP/1.1\\r\\nHost: git.test\\r\\nProxy-Authorization: Basic %s\\r\\n\\r\\n${hello}' "$pass" >&3
    read -r -N1 -u3 _`
  const endGit = `for each in /proc/[0-9]*; do grep -qsa "git-remote-htt[p]" $each/cmdline && kill -9 \${each#/proc/}; done; true`
  meanwhile = async () => {
    isHeld = true
    await app.shell(attacked, breakOff)
    const reasons = async () =>
      JSON.stringify((await app.ask('GET', `/v1/sandboxes/${attacked}/network/decisions`)).body)
    while (!(await reasons()).includes('no safe connection')) await Bun.sleep(10)
    await app.shell(attacked, endGit)
  }
  const url = `https://git.test:${port}/r.git`
  let isAnswered = false
  const asked = app
    .ask('POST', `/v1/sandboxes/${attacked}/git/clone`, { url, token: TOKEN, path: '/tmp/r' })
    .finally(() => (isAnswered = true))
  let seen = ''
  while (!isAnswered && seen === '') seen = await app.shell(attacked, find)
  meanwhile = async () => {}
  for (const each of open) each.destroy()
  front.close()
  const answer = await asked
  expect(seen).toBe('')
  expect(codeOf(answer)).toBe('400 git_clone_failed')
})

test('a sandbox with a secret of its own for the host is cloned into by the token of the clone', async () => {
  await app.ask('PUT', '/v1/secrets/OTHER', { value: 'another token' })
  const binding = { secret: 'OTHER', hosts: [`git.test:${git.port}`], as: { basic: { user: 'x-access-token' } } }
  const networkAllowOut = [`git.test:${git.port}`, `127.0.0.0/8:${git.port}`]
  const bound = await app.sandbox({ secrets: [binding], networkAllowOut })
  const url = `https://git.test:${git.port}/r.git`
  const request = { url, token: TOKEN, path: '/tmp/r' }
  expect((await app.ask('POST', `/v1/sandboxes/${bound}/git/clone`, request)).status).toBe(200)
  // Without a token it is the sandbox's own, which needs nothing inside.
  told.length = 0
  expect((await app.exec(bound, `git ls-remote ${url}`)).exitCode).not.toBe(0)
  expect(told).toContain('x-access-token:another token')
})
