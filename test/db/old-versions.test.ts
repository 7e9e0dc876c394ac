import { Database } from 'bun:sqlite'
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { listConversations } from '../../src/db/conversations.ts'
import { SCHEMA_BY } from '../../src/db/migrate.ts'
import { openDatabase } from '../../src/db/open.ts'
import { migrations } from '../../src/db/schema.ts'
import { unseal } from '../../src/db/seal.ts'
import { findSessionByHash } from '../../src/db/sessions.ts'
import { findTeam } from '../../src/db/teams.ts'
import { findWaitingReply } from '../../src/db/waiting-replies.ts'
import { findWebhookSecret } from '../../src/db/webhooks.ts'
import { cleanUpAfterEach, temporaryPath } from '../runs/support.ts'
import { TestApp } from '../support/app.ts'
import { askingPlugin } from '../support/asking-engine.ts'
import { until } from '../support/until.ts'
import { allRows, makeOldDatabase, OLD_KEY, type Row } from './old-database.ts'

cleanUpAfterEach()
setDefaultTimeout(60_000)

const newest = migrations.length
const box = 'sbx_01a2031c-779f-7745-850f-5c541ead0101'
const box2 = 'sbx_01a2031c-7b11-74ba-a756-a9546643ce8a'
const thread = `/v1/sandboxes/${box}/threads/thr_01a2031c-7909-7313-8021-134a50c3495a`
const interrupted = `/v1/sandboxes/${box}/threads/thr_01a2031c-7909-7313-8021-134a50c3496b`
const waiting = `/v1/sandboxes/${box2}/threads/thr_01a2031c-7b12-7194-a2cd-8e01857863bb`
const later = 'thr_01a2031c-7d6f-75f1-b215-2915967b9da7'
const run = '/v1/runs/run_01a2031c-7914-7083-91a0-0a6af01da849'
const webhook = '/v1/webhooks/whk_01a2031c-7896-7090-ba3b-d676c9e65ef0'

/** What callers of each version find again at today's server: since when it was there, the path, what the answer has. */
const answers: [since: number, path: string, text: string[]][] = [
  [1, '/v1/me', ['"slug":"default"']],
  [1, '/v1/keys', ['"hint":"6789"']],
  [1, '/v1/agents', ['"slug":"echo"']],
  [1, '/v1/agents/echo/definition', ['Say it again.', '"TOKEN":null']],
  [1, '/v1/sandboxes', [box]],
  [1, `/v1/sandboxes/${box}`, ['"variables":["TOKEN"]', '"cwd":"/home/user"']],
  [1, thread, ['"content":"aardvark"', '"content":"aardvark it is"', '"totalCostUsd":0.25']],
  [1, interrupted, ['"status":"error"', '"content":"half a"']],
  [1, run, ['"status":"completed"']],
  [1, `${run}/events`, ['"seq":6', 'aardvark it is']],
  [1, '/v1/threads?q=aardvark', ['"name":"one"']],
  [2, `/v1/sandboxes/${box2}`, ['It did not start.', 'example.com']],
  [2, '/v1/agents/asking/definition', ['https://mcp.example.com', '"maxTurns":5']],
  [2, '/v1/usage', ['"costUsd":0.25']],
  [3, '/v1/agents/echo/deployments', ['"version":1', '"name":"add"']],
  [3, '/v1/agents/echo/env', ['"LATER"']],
  [3, '/v1/agents/echo/logs', [box]],
  [7, waiting, ['"status":"waiting"', 'approval-requested', 'echo badger']],
  [7, '/v1/approvals?status=pending', ['"toolCallId":"call_0_0_0"']],
  [7, '/v1/approvals', ['"answerReason":"fine"', '"remember":"thread"']],
  [8, `${waiting}/queue`, ['"text":"later"', '"isStopped":true']],
  [9, `${thread}/branches`, ['"firstMessageId":"b2"']],
  [10, `/v1/sandboxes/${box}/threads/${later}`, ['capybara it is']],
  [10, '/v1/threads?q=capybara', [later]],
  [12, '/v1/agents/asking/rules', ['"rule":"Read"', '"rule":"Run"']],
  [25, '/v1/snapshots', ['"name":"before-update"', '"diskBytes":1048576']],
  [21, '/v1/schedules', ['"cron":"@daily"', '"timeZone":"Europe/Berlin"']],
  [13, '/v1/sessions', ['Firefox on Linux']],
  [15, '/v1/runs/run_01a2031c-7d71-7741-8414-1b6052aec4c5/events', ['"at":"2026-11-22T11:55:27.383Z"', 'msg_15']],
  [15, '/v1/runs/run_01a2031c-7d72-7741-8414-1b6052aec4c6/events', ['dingo it is']],
  [16, '/v1/agents/asking/deployments', ['"madeBy":"edit"']],
  [17, '/v1/threads?q=echidna', [later]],
  [18, '/v1/keys', ['"scopes":["read"]']],
  [19, webhook, ['https://hooks.example.com/']],
  [19, `${webhook}/deliveries`, ['"lastStatus":204', '"lastStatus":503']],
  [27, '/v1/secrets', ['"name":"GITHUB"']],
  // With that of the run which the start of the server interrupts.
  [19, webhook, ['"waiting":2']],
]

const opened = (db: Database) => allRows(db, (text, column, row) => unseal(db, text, column, String(row.id)))

describe('a database with rows of every version up to schema', () => {
  for (let schema = 1; schema <= newest; schema++)
    test(`${schema} has them all after its migration, and today’s server answers with them`, async () => {
      const app = new TestApp([], {}, () => [askingPlugin])
      makeOldDatabase(app.databasePath, schema)
      const old = new Database(app.databasePath, { strict: true })
      const before = opened(old)
      old.close()

      const db = openDatabase(app.databasePath)
      const after = opened(db)
      for (const [table, rows] of before) {
        const now = after.get(table) ?? []
        expect([table, now.map(row => pick(row, rows[0])).filter(row => row.name !== SCHEMA_BY)]).toEqual([table, rows])
      }
      expect(db.query('pragma foreign_key_check').all()).toEqual([])
      expect(db.query('pragma integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
      db.run("insert into message_search (message_search) values ('integrity-check')")
      db.close()

      await app.start()
      try {
        app.key = OLD_KEY
        expect(app.runtime.runs.recover(false)).toBe(1)
        const found = answers.filter(([since]) => since <= schema)
        await Promise.all(
          found.map(async ([, path, texts]) => {
            const has = async () => {
              const response = await app.request('GET', path)
              const text = await response.text()
              return [path, response.status, ...texts.filter(each => text.includes(each))]
            }
            // A server that starts indexes what a former one had no time for.
            if (path.endsWith('echidna')) await until(async () => (await has()).length === 2 + texts.length)
            expect(await has()).toEqual([path, 200, ...texts])
          }),
        )
        assertUnshown(app, schema)
      } finally {
        await app.stop()
      }
    })
})

/** What no route shows, read as the server reads it. */
function assertUnshown({ runtime: { db } }: TestApp, schema: number): void {
  const teamId = findTeam(db, 'default')?.id ?? ''
  const place = { threadId: waiting.slice(-40), messageId: 'msg_01a2031c-7b13-74da-b157-6554e8781665' }
  const sha256 = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest('hex')
  if (schema >= 4) {
    const name = { teamId, userId: 'user-1', agentSlug: 'echo', name: 'chat-1' }
    expect(listConversations(db, name)).toMatchObject([{ threadId: thread.slice(-40) }])
  }
  if (schema >= 11) expect(findWaitingReply(db, place)).toMatchObject({ threadId: place.threadId })
  if (schema >= 13) expect(findSessionByHash(db, sha256('session'))).toMatchObject({ teamId })
  if (schema >= 19) expect(findWebhookSecret(db, webhook.slice(13))).toBe('whsec_c2VjcmV0')
}

/** The columns that there were then. */
const pick = (row: Row, like: Row | undefined): Row =>
  Object.fromEntries(Object.entries(row).filter(([column]) => !like || column in like))

test('every table has rows of the version that it came with', () => {
  const path = temporaryPath()
  makeOldDatabase(path, newest)
  const db = new Database(path, { strict: true })
  // One is filled within transactions alone.
  const empty = [...opened(db)].filter(([table, rows]) => rows.length === 0 && table !== 'search_bulk')
  expect(empty.map(([table]) => `${table}: add rows to test/db/rows`)).toEqual([])
  db.close()
})
