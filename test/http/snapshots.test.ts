import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { countOfTeam } from '../../src/db/team-counts.ts'
import { findTeam } from '../../src/db/teams.ts'
import { useApp } from '../support/app.ts'
import { send } from '../support/client.ts'
import { until } from '../support/until.ts'

const app = useApp()

const snapshotsOnDisk = () => readdirSync(join(app.directory, 'snapshots'))

const recordOf = (id: string) => {
  const row = app.runtime.db.query('select environment_id as id from sandboxes where id = ?').get(id) as { id: string }
  return readFileSync(join(app.directory, 'sandboxes', row.id, 'meta.json'), 'utf8')
}

const exec = async (id: string, command: string) =>
  (await app.ask('POST', `/v1/sandboxes/${id}/exec`, { command })).body.stdout

describe('a snapshot', () => {
  test('has the files of its moment, and begins new sandboxes that do not see each other', async () => {
    const id = await app.sandbox({ envs: { COLOUR: 'blue' } })
    await exec(id, 'echo first > kept; mkdir gone; echo x > gone/file; sleep 7301 &')
    const { status, body } = await app.ask('POST', `/v1/sandboxes/${id}/snapshots`, { name: 'one' })
    expect(status).toBe(201)
    expect(body).toMatchObject({ name: 'one', keeps: 'files', sandbox: { id } })
    await exec(id, 'echo second > kept; rm -r gone')
    const copy = await app.sandbox({ agent: undefined, snapshot: 'one' })
    expect(await exec(copy, 'cat kept gone/file; echo $COLOUR; rm -r gone; ls; pgrep -c sleep')).toBe(
      'first\nx\nblue\nkept\n0\n',
    )
    const again = await app.sandbox({ agent: undefined, snapshot: body.id })
    expect(await exec(again, 'cat kept gone/file; id -un; stat -c %U kept; echo more >> kept; cat kept')).toBe(
      'first\nx\nroot\nroot\nfirst\nmore\n',
    )
    expect(await exec(id, 'cat kept')).toBe('second\n')
  })

  test('makes five forks in one request, none of which sees what another writes', async () => {
    const id = await app.sandbox()
    await exec(id, 'echo shared > file')
    const { status, body } = await app.ask('POST', `/v1/sandboxes/${id}/fork`, { count: 5 })
    expect(status).toBe(201)
    const forks: string[] = body.forks.map((fork: { sandbox: { id: string } }) => fork.sandbox.id)
    await Promise.all(forks.map((fork, index) => exec(fork, `echo ${index} >> file; touch own-${index}`)))
    const seen = await Promise.all(forks.map(fork => exec(fork, 'cat file; ls')))
    expect(seen).toEqual(forks.map((_, index) => `shared\n${index}\nfile\nown-${index}\n`))
    expect(await exec(id, 'cat file; ls')).toBe('shared\nfile\n')
  })

  test('is of one moment, however much is written meanwhile, and its disk is whole', async () => {
    const id = await app.sandbox()
    await exec(id, 'head -c 20000000 /dev/urandom > big; rm -f log; sync')
    const write = `i=0; while :; do i=$((i+1)); echo $i >> log; [ $((i % 100)) -ne 0 ] || sync log; done`
    const churn = `while :; do dd if=/dev/urandom of=big bs=64K seek=$((RANDOM % 250)) count=4 conv=notrunc; cp big other; rm other; done`
    await exec(id, `(${write}) >/dev/null 2>&1 & (${churn}) >/dev/null 2>&1 &`)
    await until(async () => Number(await exec(id, 'wc -l < log')) > 300)
    const { body } = await app.ask('POST', `/v1/sandboxes/${id}/snapshots`, {})
    expect(body.frozenMs).toBeGreaterThan(0)
    const taken = Number(await exec(id, 'wc -l < log'))
    await until(async () => Number(await exec(id, 'wc -l < log')) > taken)
    await app.ask('POST', `/v1/sandboxes/${id}/stop`)
    const image = join(app.directory, 'snapshots', body.id, 'disk.img')
    const program = Bun.which('e2fsck', { PATH: '/usr/sbin:/sbin:/usr/bin' })
    if (program) expect(Bun.spawnSync([program, '-fn', image]).exitCode).toBe(0)
    const copy = await app.sandbox({ agent: undefined, snapshot: body.id })
    const lines = Number(await exec(copy, 'seq $(wc -l < log) | cmp - log && wc -l < log'))
    expect([lines > 300, lines <= taken]).toEqual([true, true])
    expect(await exec(copy, 'stat -c %s big')).toBe('20000000\n')
    for (const each of [id, copy]) await app.ask('DELETE', `/v1/sandboxes/${each}`)
    await app.ask('DELETE', `/v1/snapshots/${body.id}`)
  })

  test('is found by its name, listed by team and sandbox, and deleted while sandboxes go on with it', async () => {
    const [id, other] = [await app.sandbox(), await app.sandbox()]
    await exec(id, 'echo kept > file')
    const take = async (of: string, name?: string) => {
      const { body } = await app.ask('POST', `/v1/sandboxes/${of}/snapshots`, name === undefined ? {} : { name })
      return body.id as string
    }
    const [one, two, elsewhere] = [await take(id, 'found'), await take(id), await take(other)]
    const idsOf = (answer: { body: { snapshots: { id: string }[] } }) => answer.body.snapshots.map(each => each.id)
    expect(idsOf(await app.ask('GET', `/v1/sandboxes/${id}/snapshots`))).toEqual([two, one])
    const page = await app.ask('GET', '/v1/snapshots?limit=1')
    expect([idsOf(page), page.body.nextBefore]).toEqual([[elsewhere], elsewhere])
    expect(idsOf(await app.ask('GET', `/v1/snapshots?limit=2&before=${elsewhere}`))).toEqual([two, one])
    expect(await app.ask('POST', `/v1/sandboxes/${other}/snapshots`, { name: 'found' })).toMatchObject({
      status: 409,
      body: { error: { code: 'conflict', field: 'name' } },
    })
    const foreign = { key: app.foreignKey }
    expect(idsOf(await app.ask('GET', '/v1/snapshots', undefined, foreign))).toEqual([])
    expect((await app.ask('DELETE', `/v1/snapshots/${one}`, undefined, foreign)).body.error.code).toBe('not_found')
    const stolen = await app.ask('POST', '/v1/sandboxes', { snapshot: one }, foreign)
    expect([stolen.status, stolen.body.error.code]).toEqual([404, 'not_found'])

    const copy = await app.sandbox({ agent: undefined, snapshot: 'found' })
    expect((await app.ask('DELETE', '/v1/snapshots/found')).status).toBe(204)
    expect((await app.ask('DELETE', `/v1/sandboxes/${id}`)).status).toBe(204)
    expect((await app.ask('POST', '/v1/sandboxes', { snapshot: 'found' })).status).toBe(404)
    await app.ask('POST', `/v1/sandboxes/${copy}/stop`)
    expect(await exec(copy, 'cat file')).toBe('kept\n')
    // Its files go with the last sandbox that shares them.
    expect(snapshotsOnDisk()).toContain(one)
    await app.ask('DELETE', `/v1/sandboxes/${copy}`)
    expect(snapshotsOnDisk()).not.toContain(one)
    for (const each of [two, elsewhere]) await app.ask('DELETE', `/v1/snapshots/${each}`)
  })

  test('is deleted while a sandbox is made of it: the sandbox is whole, or is refused', async () => {
    const id = await app.sandbox()
    await exec(id, 'echo kept > file')
    for (let round = 0; round < 4; round++) {
      const { body } = await app.ask('POST', `/v1/sandboxes/${id}/snapshots`, {})
      const [made, deleted] = await Promise.all([
        app.ask('POST', '/v1/sandboxes', { snapshot: body.id }),
        (async () => {
          await Bun.sleep(round * 10)
          return await app.ask('DELETE', `/v1/snapshots/${body.id}`)
        })(),
      ])
      expect(deleted.status).toBe(204)
      if (made.status === 201) expect(await exec(made.body.id, 'cat file')).toBe('kept\n')
      else expect([made.status, made.body.error.code]).toEqual([404, 'not_found'])
      if (made.status === 201) await app.ask('DELETE', `/v1/sandboxes/${made.body.id}`)
      expect(snapshotsOnDisk()).not.toContain(body.id)
    }
  })

  test("brings limits, rules, variables and time to live along, and takes a request's own in their place", async () => {
    const id = await app.sandbox({
      envs: { A: '1', B: '1' },
      networkAllowOut: ['example.com'],
      networkDenyOut: ['b.example.com'],
      timeoutMs: 3_600_000,
    })
    await app.ask('POST', `/v1/sandboxes/${id}/snapshots`, { name: 'rules' })
    const origin = (await app.ask('GET', `/v1/sandboxes/${id}`)).body
    const plain = await app.sandbox({ agent: undefined, snapshot: 'rules' })
    const seen = (await app.ask('GET', `/v1/sandboxes/${plain}`)).body
    expect(seen).toMatchObject({
      limits: origin.limits,
      network: origin.network,
      variables: ['A', 'B'],
      cwd: origin.cwd,
    })
    expect(app.runtime.db.query('select timeout_ms from sandboxes where id = ?').get(plain)).toEqual({
      timeout_ms: 3_600_000,
    })
    const own = await app.sandbox({
      snapshot: 'rules',
      envs: { B: '2', C: '3' },
      networkAllowOut: ['other.example.com'],
      files: { '/home/user/new': 'new' },
      setup: ['echo set >> new'],
    })
    expect(await exec(own, 'echo $A$B$C; cat new')).toBe('123\nnewset\n')
    expect((await app.ask('GET', `/v1/sandboxes/${own}`)).body.network).toMatchObject({
      allowOut: ['other.example.com'],
      denyOut: ['b.example.com'],
    })
    const wrong = await app.ask('POST', '/v1/sandboxes', { agent: 'claude-code', snapshot: 'rules' })
    expect([wrong.status, wrong.body.error.field]).toEqual([400, 'agent'])
    expect((await app.ask('POST', '/v1/sandboxes', {})).body.error).toMatchObject({
      code: 'invalid_request',
      field: 'agent',
    })
  })

  test("counts against the team's disk for as long as its files are there", async () => {
    const count = () => countOfTeam(app.runtime.db, findTeam(app.runtime.db, 'default')!.id, 'disk')
    const before = count()
    const id = await app.sandbox()
    await exec(id, 'head -c 30000000 /dev/urandom > big')
    const { body } = await app.ask('POST', `/v1/sandboxes/${id}/snapshots`, {})
    expect(body.diskBytes).toBeGreaterThan(30_000_000)
    // Its own files count once its backend tells them, which may be later.
    await app.ask('DELETE', `/v1/sandboxes/${id}`)
    expect(count() - before).toBeGreaterThanOrEqual(body.diskBytes)
    const copy = await app.sandbox({ agent: undefined, snapshot: body.id })
    await app.ask('DELETE', `/v1/snapshots/${body.id}`)
    expect(count() - before).toBeGreaterThanOrEqual(body.diskBytes)
    await app.ask('DELETE', `/v1/sandboxes/${copy}`)
    expect(count() - before).toBeLessThan(body.diskBytes)
  })
})

describe('a fork', () => {
  const say = async (text: string, place: object) => {
    const messages = [{ id: `m-${text}`, role: 'user', parts: [{ type: 'text', text }] }]
    await (await app.request('POST', '/v1/chat/echo', { body: { ...place, messages } })).text()
  }

  test('goes on with the conversation up to a message, and the other threads stay where they are', async () => {
    const id = await app.sandbox()
    const { id: threadId } = (await app.ask('POST', `/v1/sandboxes/${id}/threads`, { name: 'the one' })).body
    await say('first', { sandboxId: id, threadId })
    await say('second', { sandboxId: id, threadId })
    await say('another', { sandboxId: id })
    const { body } = await app.ask('POST', `/v1/sandboxes/${id}/fork`, { count: 2, threadId, messageId: 'm-second' })
    const [one, two] = body.forks
    const read = async (fork: typeof one) => {
      const { threads } = (await app.ask('GET', `/v1/sandboxes/${fork.sandbox.id}`)).body
      expect(threads).toMatchObject([{ id: fork.threadId, name: 'the one' }])
      const thread = (await app.ask('GET', `/v1/sandboxes/${fork.sandbox.id}/threads/${fork.threadId}`)).body
      return thread.messages.map((message: { content: string }) => message.content)
    }
    expect([await read(one), await read(two)]).toEqual([
      ['first', 'first', 'second'],
      ['first', 'first', 'second'],
    ])
    await say('third', { sandboxId: one.sandbox.id, threadId: one.threadId })
    expect((await read(one)).at(-1)).toBe('third')
    expect(await read(two)).toEqual(['first', 'first', 'second'])
    const whole = (await app.ask('POST', `/v1/sandboxes/${id}/fork`, { threadId })).body.forks[0]
    expect(await read(whole)).toEqual(['first', 'first', 'second', 'second'])
    for (const [fields, code] of [
      [{ threadId: 'thr_none' }, 'thread_not_found'],
      [{ threadId, messageId: 'none' }, 'invalid_request'],
      [{ messageId: 'm-first' }, 'invalid_request'],
      [{ count: 0 }, 'invalid_request'],
      [{ count: 101 }, 'invalid_request'],
    ] as const) {
      expect((await app.ask('POST', `/v1/sandboxes/${id}/fork`, fields)).body.error.code).toBe(code)
    }
  })

  test('shares no id, boot, mark, link or variable of its guest with its origin', async () => {
    const id = await app.sandbox()
    const { url } = (await app.ask('POST', `/v1/sandboxes/${id}/ports/8000/link`, {})).body
    const facts =
      'cat /proc/sys/kernel/random/boot_id; tr "\\0" "\\n" < /proc/1/environ; env; stat -f -c %i /; cat /etc/machine-id'
    const before = await exec(id, facts)
    const fork = (await app.ask('POST', `/v1/sandboxes/${id}/fork`, {})).body.forks[0].sandbox
    const after = await exec(fork.id, facts)
    const random = (text: string) => new Set(text.match(/[0-9a-f]{8,}/g) ?? [])
    expect(random(before).size).toBeGreaterThan(0)
    expect([...random(before).intersection(random(after))]).toEqual([])
    expect(url).toContain(`/${id}/`)
    const opened = await send('', 'GET', url.replace(id, fork.id), {})
    expect(opened.status).toBe(401)
    await app.ask('POST', `/v1/sandboxes/${id}/stop`)
    expect(await exec(id, 'cat /proc/sys/kernel/random/boot_id')).not.toBe(`${before.split('\n')[0]}\n`)
    // Each has user ids of its own, so that none can meet another's by a limit or a key of the kernel.
    const ranges = [id, fork.id].map(each => JSON.parse(recordOf(each)).slot)
    expect(new Set(ranges).size).toBe(2)
  })

  test("has placeholders of its own for its origin's secrets", async () => {
    await app.ask('PUT', '/v1/secrets/TOKEN', { value: `ghp_${'a1B2'.repeat(9)}` })
    const secrets = [
      { secret: 'TOKEN', hosts: ['api.example.com'], as: { env: 'ONE' } },
      { secret: 'TOKEN', hosts: ['other.example.com'], as: { header: 'x-key' } },
    ]
    const id = await app.sandbox({ secrets, envs: { PLAIN: 'same' } })
    const { forks } = (await app.ask('POST', `/v1/sandboxes/${id}/fork`, { count: 2 })).body
    const ids: string[] = [id, ...forks.map((fork: { sandbox: { id: string } }) => fork.sandbox.id)]
    const seen = await Promise.all(ids.map(each => exec(each, 'echo $ONE; echo $PLAIN')))
    for (const each of seen) expect(each).toMatch(/^ghp_\w{36}\nsame\n$/)
    expect(new Set(seen).size).toBe(3)
    const bindings = await Promise.all(
      ids.map(async each => (await app.ask('GET', `/v1/sandboxes/${each}`)).body.secrets),
    )
    expect(bindings[0]).toHaveLength(2)
    expect(bindings).toEqual([bindings[0], bindings[0], bindings[0]])
  })
})
