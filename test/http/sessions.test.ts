import { describe, expect, test } from 'bun:test'
import { createKey } from '../../src/core/access/keys.ts'
import { createSignInLink } from '../../src/core/access/sessions.ts'
import { revokeKey } from '../../src/db/keys.ts'
import { findTeam } from '../../src/db/teams.ts'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'

const app = useApp(['--api-key', 'tbx_configured_0123456789'])
const origin = () => app.url

/** A browser: it keeps the cookie, and says where a request comes from. */
const signIn = async (credential: object, headers: Record<string, string> = { origin: origin() }) => {
  const response = await app.request('POST', '/v1/session', { key: null, body: credential, headers })
  const setCookie = response.headers.get('set-cookie') ?? ''
  return { response, setCookie, cookie: setCookie.split(';')[0] ?? '' }
}
const withCookie = (cookie: string, headers: Record<string, string> = {}) => ({
  key: null,
  headers: { cookie, origin: origin(), ...headers },
})
const statusOf = async (cookie: string) => (await app.ask('GET', '/v1/sandboxes', undefined, withCookie(cookie))).status
const newLink = (lifetime = 0) => {
  const link = app.beside(db => createSignInLink(db, { teamId: findTeam(db, 'default')!.id }))
  if (lifetime < 0) app.beside(db => db.run("update sign_in_links set expires_at = '2020-01-01T00:00:00.000Z'"))
  return link
}

describe('a key is changed for a cookie', () => {
  test('that no script reads and no other site sends', async () => {
    const { response, setCookie } = await signIn({ key: app.key })
    expect(response.status).toBe(201)
    const { port } = new URL(app.url)
    expect(setCookie).toMatch(
      new RegExp(`^threadbox-${port}=tbs_[\\w-]{40}; Path=/; Expires=[^;]+; HttpOnly; SameSite=Strict$`),
    )
    expect(await response.text()).not.toContain('tbs_')
  })

  test('and the database has neither', async () => {
    const { cookie } = await signIn({ key: app.key })
    const stored = app.beside(db => JSON.stringify(db.query('select * from sessions').all()))
    expect(stored).not.toContain(cookie.split('=')[1]!)
    expect(stored).not.toContain(app.key)
  })

  test('which does all that the key does, also for a key of the configuration', async () => {
    for (const key of [app.key, 'tbx_configured_0123456789']) {
      const { cookie } = await signIn({ key })
      expect(await statusOf(cookie)).toBe(200)
      const { body } = await app.ask('GET', '/v1/session', undefined, withCookie(cookie))
      expect(body).toMatchObject({ id: expect.stringMatching(/^ses_/), caller: { team: { name: 'default' } } })
      const { status } = await app.ask('POST', '/v1/tokens', {}, withCookie(cookie))
      expect(status).toBe(201)
    }
  })

  test('a header of the request wins', async () => {
    const { cookie } = await signIn({ key: app.key })
    const options = { key: app.foreignKey, headers: { cookie, origin: origin() } }
    expect((await app.ask('GET', '/v1/session', undefined, options)).body.caller.team.name).toBe('other')
  })

  test('not for what is no key', async () => {
    const { token } = (await app.ask('POST', '/v1/tokens', {})).body
    for (const credential of [{ key: token }, { key: `tbx_${'a'.repeat(40)}` }, { key: 'a b' }, { link: 'tbi_x' }]) {
      const { response, setCookie } = await signIn(credential)
      expect(`${response.status} ${setCookie}`).toBe('401 ')
    }
    for (const body of [{}, { key: 'a', link: 'b' }, { other: 1 }])
      expect((await signIn(body)).response.status).toBe(400)
    expect(app.log.filter(line => line.includes('no sign-in')).length).toBeGreaterThan(0)
  })
})

test('a stranger’s body is not read beyond what a key takes: regression', async () => {
  const { response } = await signIn({ key: 'a'.repeat(100_000) })
  expect(response.status).toBe(413)
})

test('a browser that is not signed in is told so, and no refusal is logged', async () => {
  const before = app.log.length
  const { status, body } = await app.ask('GET', '/v1/session', undefined, { key: null })
  expect({ status, body }).toEqual({ status: 200, body: { id: null, caller: null } })
  expect(app.log.slice(before)).toEqual([])
  expect((await app.ask('GET', '/v1/session', undefined, withCookie('none=1'))).body.caller).toBeNull()
  for (const options of [{ key: 'tbx_wrong' }, withCookie(`threadbox-${new URL(app.url).port}=tbs_wrong`)])
    expect(codeOf(await app.ask('GET', '/v1/session', undefined, options))).toBe('401 unauthorized')
  expect(codeOf(await app.ask('DELETE', '/v1/session', undefined, { key: null }))).toBe('401 unauthorized')
})

test('a browser whose session has ended forgets its cookie when its page asks, so that one refusal is logged', async () => {
  const name = `threadbox-${new URL(app.url).port}`
  const dead = withCookie(`${name}=tbs_ended`)
  const before = app.log.length
  const response = await app.request('GET', '/v1/session', dead)
  expect(response.status).toBe(401)
  expect(response.headers.get('set-cookie')).toBe(
    `${name}=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; SameSite=Strict`,
  )
  expect(app.log.slice(before)).toHaveLength(1)
  // Answers of other requests may come after a new sign-in, and leave its cookie alone.
  expect((await app.request('GET', '/v1/sandboxes', dead)).headers.get('set-cookie')).toBeNull()
  const foreign = { ...dead, headers: { ...dead.headers, origin: 'https://evil.example' } }
  expect((await app.request('GET', '/v1/session', foreign)).headers.get('set-cookie')).toBeNull()
  const wrongKey = { key: 'tbx_wrong', headers: dead.headers }
  expect((await app.request('GET', '/v1/session', wrongKey)).headers.get('set-cookie')).toBeNull()
})

describe('a link', () => {
  test('signs in once, whoever is first', async () => {
    const link = newLink()
    const answers = await Promise.all(Array.from({ length: 8 }, () => signIn({ link })))
    expect(answers.map(({ response }) => response.status).sort()).toEqual([201, ...Array(7).fill(401)])
    const { cookie } = answers.find(({ response }) => response.status === 201)!
    expect(await statusOf(cookie)).toBe(200)
  })

  test('does not after its ten minutes', async () => {
    expect((await signIn({ link: newLink(-1) })).response.status).toBe(401)
  })
})

describe('a session ends', () => {
  test('with its key', async () => {
    const { key, row } = app.beside(db => createKey(db, { team: 'default', name: 'short' }))
    const { cookie } = await signIn({ key })
    expect(await statusOf(cookie)).toBe(200)
    app.beside(db => revokeKey(db, row.id))
    expect(await statusOf(cookie)).toBe(401)
  })

  test('after its time', async () => {
    const { cookie } = await signIn({ key: app.key })
    app.beside(db => db.run("update sessions set expires_at = '2020-01-01T00:00:00.000Z'"))
    expect(await statusOf(cookie)).toBe(401)
  })

  test('by signing out, and the browser forgets it', async () => {
    const { cookie } = await signIn({ key: app.key })
    const response = await app.request('DELETE', '/v1/session', withCookie(cookie))
    expect(response.status).toBe(204)
    expect(response.headers.get('set-cookie')).toContain('Expires=Thu, 01 Jan 1970')
    expect(await statusOf(cookie)).toBe(401)
  })

  test('from another browser of the team, never from another team', async () => {
    const { cookie } = await signIn({ key: app.key })
    const { id } = (await app.ask('GET', '/v1/session', undefined, withCookie(cookie))).body
    const foreign = await app.ask('DELETE', `/v1/sessions/${id}`, undefined, { key: app.foreignKey })
    expect(codeOf(foreign)).toBe('404 not_found')
    const { sessions } = (await app.ask('GET', '/v1/sessions', undefined, withCookie(cookie))).body
    expect(sessions.find((each: { id: string }) => each.id === id)).toMatchObject({ isCurrent: true })
    expect((await app.ask('DELETE', `/v1/sessions/${id}`)).status).toBe(204)
    expect(await statusOf(cookie)).toBe(401)
  })

  test('when the server gets another configured key', async () => {
    const { cookie } = await signIn({ key: 'tbx_configured_0123456789' })
    const { config } = app.runtime
    config.apiKey = 'tbx_another_0123456789'
    expect(await statusOf(cookie)).toBe(401)
    config.apiKey = 'tbx_configured_0123456789'
  })

  test('not by a token', async () => {
    const { token } = (await app.ask('POST', '/v1/tokens', {})).body
    for (const [method, path] of [
      ['GET', '/v1/sessions'],
      ['DELETE', '/v1/sessions/x'],
      ['GET', '/v1/keys'],
      ['POST', '/v1/keys'],
      ['DELETE', '/v1/keys/x'],
    ] as const) {
      const answer = await app.ask(method, path, method === 'POST' ? { name: 'a' } : undefined, { key: token })
      expect(`${path} ${codeOf(answer)}`).toBe(`${path} 403 forbidden`)
    }
  })
})

describe('a page of another origin cannot use the session: regression', () => {
  const foreign: [string, string, Record<string, string>][] = [
    ['a form', 'POST', { origin: 'https://evil.example' }],
    ['a page in a sandbox', 'POST', { origin: 'null', 'sec-fetch-site': 'cross-site' }],
    ['another port of this host', 'POST', { origin: 'http://127.0.0.1:1', 'sec-fetch-site': 'same-site' }],
    ['an image', 'GET', { 'sec-fetch-site': 'cross-site' }],
    ['an old browser’s form, which says nothing', 'POST', {}],
    ['a typed address that changes something', 'POST', { 'sec-fetch-site': 'none' }],
    ['a WebSocket', 'GET', { origin: 'https://evil.example', upgrade: 'websocket', connection: 'upgrade' }],
    ['a WebSocket that names no origin', 'GET', { upgrade: 'websocket', connection: 'upgrade' }],
  ]
  for (const [name, method, headers] of foreign) {
    test(name, async () => {
      const { cookie } = await signIn({ key: app.key })
      const body = method === 'POST' ? { body: {} } : {}
      const response = await app.request(method, '/v1/tokens', { key: null, headers: { cookie, ...headers }, ...body })
      expect(response.status).toBe(403)
    })
  }

  test('nor sign a browser in', async () => {
    const { response, setCookie } = await signIn({ key: app.key }, { origin: 'https://evil.example' })
    expect(`${response.status} ${setCookie}`).toBe('403 ')
  })

  test('a page of this server can, and so can an address that the user types', async () => {
    const { cookie } = await signIn({ key: app.key })
    for (const headers of [{ 'sec-fetch-site': 'same-origin' }, { 'sec-fetch-site': 'none' }, {}]) {
      const response = await app.request('GET', '/v1/sandboxes', { key: null, headers: { cookie, ...headers } })
      expect(response.status).toBe(200)
    }
  })
})

describe('behind a proxy that ends TLS', () => {
  const publicUrl = 'https://box.example:8443'
  const asProxy = (origin = publicUrl) => ({ origin, 'sec-fetch-site': 'same-origin' })
  const behind = async (work: () => Promise<void>) => {
    app.runtime.config.publicUrl = publicUrl
    await work().finally(() => delete app.runtime.config.publicUrl)
  }

  test('which names this server as it likes, a page signs in and changes things', () =>
    behind(async () => {
      const { response, setCookie, cookie } = await signIn({ key: app.key }, asProxy())
      expect(response.status).toBe(201)
      expect(setCookie).toMatch(/^__Host-threadbox-8443=tbs_.*; SameSite=Strict; Secure$/)
      const options = { key: null, headers: { cookie, ...asProxy() }, body: {} }
      expect((await app.request('POST', '/v1/tokens', options)).status).toBe(201)
    }))

  test('a page of another host or port does not: regression', () =>
    behind(async () => {
      for (const origin of ['https://box.example', 'https://evil.example:8443', 'http://box.example:8443', 'null'])
        expect((await signIn({ key: app.key }, asProxy(origin))).response.status).toBe(403)
    }))
})

describe('keys', () => {
  test('are made, shown once, listed and revoked', async () => {
    const { status, body } = await app.ask('POST', '/v1/keys', { name: 'ci', expiresInDays: 30 })
    expect(status).toBe(201)
    expect(Date.parse(body.expiresAt) - Date.now()).toBeGreaterThan(29 * 86_400_000)
    expect((await app.ask('GET', '/v1/me', undefined, { key: body.key })).body.name).toBe('ci')
    const { keys } = (await app.ask('GET', '/v1/keys')).body
    expect(keys[0]).toMatchObject({ id: body.id, hint: body.key.slice(-4), revokedAt: null })
    expect(JSON.stringify(keys)).not.toContain(body.key)
    expect((await app.ask('DELETE', `/v1/keys/${body.id}`)).status).toBe(204)
    expect(codeOf(await app.ask('DELETE', `/v1/keys/${body.id}`))).toBe('404 not_found')
    expect(codeOf(await app.ask('GET', '/v1/me', undefined, { key: body.key }))).toBe('401 unauthorized')
  })

  test('of another team are not known', async () => {
    const { id } = (await app.ask('POST', '/v1/keys', { name: 'a' })).body
    expect(codeOf(await app.ask('DELETE', `/v1/keys/${id}`, undefined, { key: app.foreignKey }))).toBe('404 not_found')
    const { keys } = (await app.ask('GET', '/v1/keys', undefined, { key: app.foreignKey })).body
    expect(keys.map((each: { id: string }) => each.id)).not.toContain(id)
  })

  test('that expire make none that outlives them', async () => {
    const { key, row } = app.beside(db =>
      createKey(db, { team: 'default', name: 'day', expiresAt: new Date(Date.now() + 86_400_000).toISOString() }),
    )
    for (const expiresInDays of [undefined, 2]) {
      const { body } = await app.ask(
        'POST',
        '/v1/keys',
        { name: 'b', ...(expiresInDays && { expiresInDays }) },
        { key },
      )
      expect(body.expiresAt).toBe(row.expiresAt)
    }
  })
})
