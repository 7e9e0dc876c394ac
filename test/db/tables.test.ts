import { describe, expect, test } from 'bun:test'
import { findAgent, listAgents, removeAgent, saveAgent } from '../../src/db/agents.ts'
import { newId } from '../../src/db/id.ts'
import { countKeys, findKeyByHash, insertKey, listKeys, revokeKey } from '../../src/db/keys.ts'
import { appendMessages, listMessages } from '../../src/db/messages.ts'
import { insertRun } from '../../src/db/runs.ts'
import {
  deleteSandbox,
  findSandbox,
  insertSandbox,
  listEnvironments,
  listExpiredSandboxes,
  listSandboxes,
  touchSandbox,
} from '../../src/db/sandboxes.ts'
import { ensureTeam } from '../../src/db/teams.ts'
import {
  deleteThread,
  findThread,
  insertThread,
  listThreads,
  setEngineSession,
  threadUsage,
} from '../../src/db/threads.ts'
import type { AgentInput } from '../../src/model/agent.ts'
import { addSandbox, cleanUpAfterEach, openTemporary } from '../runs/support.ts'

cleanUpAfterEach()

describe('keys', () => {
  test('are found by their hash, with what is known of them', () => {
    const db = openTemporary()
    const { id: teamId } = ensureTeam(db, 'team')
    const key = insertKey(db, { teamId, name: 'ci', hash: 'h1', hint: 'abcd' })
    const short = insertKey(db, {
      teamId,
      name: 'day',
      hash: 'h2',
      hint: 'efgh',
      expiresAt: '2030-01-01T00:00:00.000Z',
    })
    expect(findKeyByHash(db, 'h1')).toEqual(key)
    expect(findKeyByHash(db, 'h2')).toEqual(short)
    expect(findKeyByHash(db, 'h3')).toBeUndefined()
    expect(key).not.toHaveProperty('hash')
    expect(listKeys(db)).toEqual([
      { ...key, team: 'team' },
      { ...short, team: 'team' },
    ])
    expect(countKeys(db)).toBe(2)
  })

  test('are revoked once, and can still be found', () => {
    const db = openTemporary()
    const key = insertKey(db, { teamId: ensureTeam(db, 'team').id, name: 'ci', hash: 'h', hint: 'abcd' })
    expect([revokeKey(db, key.id), revokeKey(db, key.id), revokeKey(db, 'key_none')]).toEqual([true, false, false])
    expect(findKeyByHash(db, 'h')?.revokedAt).toMatch(/Z$/)
  })

  test('have hashes of their own', () => {
    const db = openTemporary()
    const key = { teamId: ensureTeam(db, 'team').id, name: 'ci', hash: 'h', hint: 'abcd' }
    insertKey(db, key)
    expect(() => insertKey(db, key)).toThrow('UNIQUE')
  })
})

describe('agents', () => {
  const input: AgentInput = {
    slug: 'echo',
    name: 'Echo',
    engine: 'echo',
    model: 'm',
    systemPrompt: 'Be brief.',
    sandbox: { files: { '/a': 'b' }, envs: { A: 'b' }, setup: ['true'], cwd: '/srv', limits: { cpus: 0.5 } },
    options: { maxTurns: 5 },
  }

  test('saved again, one keeps its id and its beginning and nothing else', () => {
    const db = openTemporary()
    const { id: teamId } = ensureTeam(db, 'team')
    const first = saveAgent(db, teamId, input)
    expect(findAgent(db, teamId, 'echo')).toEqual(first)
    const bare: AgentInput = {
      slug: 'echo',
      name: 'E',
      engine: 'acp',
      sandbox: { files: {}, envs: {}, setup: [], limits: {} },
      options: {},
    }
    const second = saveAgent(db, teamId, bare)
    expect(second).toEqual({ ...bare, id: first.id, teamId, createdAt: first.createdAt, updatedAt: expect.any(String) })
    expect(listAgents(db, teamId)).toEqual([second])
  })

  test('are seen by their team alone', () => {
    const db = openTemporary()
    const [a, b] = [ensureTeam(db, 'a').id, ensureTeam(db, 'b').id]
    saveAgent(db, a, input)
    expect(findAgent(db, b, 'echo')).toBeUndefined()
    expect(removeAgent(db, b, 'echo')).toBe(false)
    saveAgent(db, b, input)
    expect([removeAgent(db, a, 'echo'), removeAgent(db, a, 'echo')]).toEqual([true, false])
    expect(listAgents(db, b)).toHaveLength(1)
  })

  test('an unreadable one is an error that names the column', () => {
    const db = openTemporary()
    const { id: teamId } = ensureTeam(db, 'team')
    saveAgent(db, teamId, input)
    db.run(`update agents set sandbox = '{"files":{"/a":1},"envs":{},"setup":[],"limits":{}}'`)
    expect(() => findAgent(db, teamId, 'echo')?.sandbox).toThrow('agents.sandbox')
  })
})

describe('sandboxes', () => {
  test('are found by their own id and their environment, by their team', () => {
    const db = openTemporary()
    const sandbox = addSandbox(db)
    expect(findSandbox(db, sandbox.teamId, sandbox.id)).toEqual(sandbox)
    expect(findSandbox(db, sandbox.teamId, sandbox.environmentId)).toEqual(sandbox)
    expect(findSandbox(db, ensureTeam(db, 'other').id, sandbox.id)).toBeUndefined()
  })

  test('keep their optional fields', () => {
    const db = openTemporary()
    const { createdAt, updatedAt, lastUsedAt, ...bare } = addSandbox(db)
    const ids = { id: newId('sbx'), environmentId: newId('env') }
    const sandbox = insertSandbox(db, { ...bare, ...ids, error: 'e', timeoutMs: 5, envs: { A: '1' } })
    expect(findSandbox(db, sandbox.teamId, sandbox.id)).toEqual(sandbox)
    expect([createdAt, updatedAt, lastUsedAt]).toEqual([createdAt, createdAt, createdAt])
  })

  test('are paged, newest first', () => {
    const db = openTemporary()
    const all = Array.from({ length: 5 }, () => addSandbox(db)).reverse()
    const { teamId } = all[0]!
    const first = listSandboxes(db, teamId, { limit: 2 })
    const second = listSandboxes(db, teamId, { limit: 10, before: first[1]!.id })
    expect([...first, ...second].map(({ id }) => id)).toEqual(all.map(({ id }) => id))
    expect(second).toHaveLength(3)
  })

  test('expire after their time without use, and not during a run', () => {
    const db = openTemporary()
    const { teamId, ...plain } = addSandbox(db)
    const make = (timeoutMs: number) =>
      insertSandbox(db, { ...plain, teamId, id: newId('sbx'), environmentId: newId('env'), timeoutMs })
    const [short, , busy] = [make(1000), make(60_000), make(1000)]
    const thread = insertThread(db, { sandboxId: busy.id })
    const ids = { threadId: thread.id, sandboxId: busy.id }
    const run = {
      id: newId('run'),
      ...ids,
      background: false,
      messageId: null,
      profile: 'contract' as const,
      model: 'm',
    }
    insertRun(db, run)
    const later = (ms: number) => new Date(Date.parse(short.lastUsedAt) + ms)
    expect(listExpiredSandboxes(db, later(990))).toEqual([])
    expect(listExpiredSandboxes(db, later(1010)).map(({ id }) => id)).toEqual([short.id])
    db.query("update sandboxes set last_used_at = '2020-01-01T00:00:00.000Z' where id = ?").run(short.id)
    touchSandbox(db, short.id)
    expect(listExpiredSandboxes(db, later(0))).toEqual([])
  })

  test('take all they have with them', () => {
    const db = openTemporary()
    const sandbox = addSandbox(db)
    const thread = insertThread(db, { sandboxId: sandbox.id })
    appendMessages(db, thread.id, [{ id: 'm', role: 'user', parts: [] }])
    expect(listEnvironments(db, 'nsjail')).toEqual([sandbox.environmentId])
    expect(listEnvironments(db, 'docker')).toEqual([])
    expect([deleteSandbox(db, sandbox.id), deleteSandbox(db, sandbox.id)]).toEqual([true, false])
    for (const table of ['sandboxes', 'threads', 'messages'])
      expect(db.query(`select * from ${table}`).all()).toEqual([])
  })

  test('go with their team', () => {
    const db = openTemporary()
    const { teamId } = addSandbox(db)
    db.query('delete from teams where id = ?').run(teamId)
    expect(db.query('select * from sandboxes').all()).toEqual([])
  })
})

describe('threads', () => {
  test('begin active, named or not', () => {
    const db = openTemporary()
    const sandbox = addSandbox(db)
    const thread = insertThread(db, { sandboxId: sandbox.id })
    expect(thread).toMatchObject({ name: null, status: 'active', error: null, completedAt: null })
    expect(thread).not.toHaveProperty('externalUserId')
    const named = insertThread(db, { sandboxId: sandbox.id, name: 'n', externalUserId: 'u' })
    expect(findThread(db, sandbox.id, named.id)).toEqual(named)
    expect(listThreads(db, sandbox.id)).toEqual([named, thread])
    expect(findThread(db, addSandbox(db).id, named.id)).toBeUndefined()
    expect([deleteThread(db, thread.id), deleteThread(db, thread.id)]).toEqual([true, false])
  })

  test('need a sandbox', () => {
    expect(() => insertThread(openTemporary(), { sandboxId: 'sbx_none' })).toThrow('FOREIGN KEY')
  })

  test('keep the session of their engine', () => {
    const db = openTemporary()
    const thread = insertThread(db, { sandboxId: addSandbox(db).id })
    setEngineSession(db, thread.id, 's1')
    expect(findThread(db, thread.sandboxId, thread.id)?.engineSessionId).toBe('s1')
  })

  test('have no usage before a run has ended', () => {
    const db = openTemporary()
    const thread = insertThread(db, { sandboxId: addSandbox(db).id })
    const nothing = { inputTokens: null, outputTokens: null, totalTokens: null, totalCostUsd: null, durationMs: null }
    expect(threadUsage(db, thread.id)).toEqual(nothing)
    const ids = { threadId: thread.id, sandboxId: thread.sandboxId }
    insertRun(db, { id: newId('run'), ...ids, background: false, messageId: null, profile: 'contract', model: 'm' })
    expect(threadUsage(db, thread.id)).toEqual(nothing)
  })
})

describe('messages', () => {
  test('are kept in order, and each id once', () => {
    const db = openTemporary()
    const { id } = insertThread(db, { sandboxId: addSandbox(db).id })
    const [a, b, c] = ['z', 'y', 'x'].map(name => ({
      id: name,
      role: 'user' as const,
      parts: [
        { type: 'text', text: name },
        { type: 'file', url: 'data:,' },
      ],
    }))
    expect(appendMessages(db, id, [a!, b!])).toEqual([a!, b!])
    expect(appendMessages(db, id, [a!, c!, c!, b!])).toEqual([c!])
    expect(listMessages(db, id)).toEqual(
      [a!, b!, c!].map(message => ({ ...message, metadata: null, createdAt: expect.any(String) })),
    )
  })

  test('of two threads may have the same id', () => {
    const db = openTemporary()
    const sandboxId = addSandbox(db).id
    for (const { id } of [insertThread(db, { sandboxId }), insertThread(db, { sandboxId })])
      expect(appendMessages(db, id, [{ id: 'm', role: 'user', parts: [] }])).toHaveLength(1)
  })
})
