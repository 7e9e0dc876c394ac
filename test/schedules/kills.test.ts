import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type Server, useServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const ROUNDS = 3
const KILLS = 3
const server = useServer({ flags: ['--spares', '0', '--grace-ms', '0'] })

const create = async (fields: object): Promise<string> =>
  (await server.ask('POST', '/v1/schedules', { cron: '0 0 1 1 *', agent: 'echo', ...fields })).body.id

/** As after a long time without a server: all schedules were due at this moment. */
function makeDue(server: Server, at: string): void {
  const db = new Database(join(server.dataDirectory, 'threadbox.db'), { strict: true })
  db.query('update schedules set next_at = $at').run({ at })
  db.close()
}

describe('kill -9 at any moment', () => {
  test('loses nothing that was due, and does nothing twice', async () => {
    const sandbox = await server.sandbox()
    const commands: string[] = []
    const prompts: string[] = []
    for (let index = 0; index < 4; index++) {
      const command = `sleep 0.${index}; echo $THREADBOX_SCHEDULE_RUN >> log`
      commands.push(await create({ command, sandbox }))
      prompts.push(await create({ prompt: `hello ${index}`, sandbox: index % 2 ? sandbox : 'new' }))
    }
    const runsOf = async (id: string) => (await server.ask('GET', `/v1/schedules/${id}/runs`)).body.runs
    for (let round = 0; round < ROUNDS; round++) {
      await server.kill()
      makeDue(server, `2020-01-01T00:0${round}:00.000Z`)
      for (let kill = 0; kill < KILLS; kill++) {
        await server.start()
        await Bun.sleep(Math.random() * 500)
        await server.kill()
      }
      await server.start()
      await until(async () => {
        for (const id of [...commands, ...prompts]) {
          const runs = await runsOf(id)
          if (runs.length !== round + 1 || runs.some((run: any) => run.endedAt === null)) return false
        }
        return true
      })
    }
    const done = (await server.exec(sandbox, 'cat log')).stdout.trim().split('\n')
    const wanted: string[] = []
    for (const id of commands) {
      const runs = await runsOf(id)
      expect(runs.map((run: any) => [run.status, run.exitCode])).toEqual(runs.map(() => ['completed', 0]))
      wanted.push(...runs.map((run: any) => run.id))
    }
    expect(done.sort()).toEqual(wanted.sort())
    const threads: string[] = []
    for (const id of prompts) {
      for (const run of await runsOf(id)) {
        expect(['completed', 'interrupted']).toContain(run.status)
        const { body } = await server.ask('GET', `/v1/runs?threadId=${run.threadId}`)
        expect(body.runs.map((each: any) => each.id)).toEqual([run.runId])
        threads.push(run.threadId)
      }
    }
    const all = (await server.ask('GET', '/v1/threads?limit=200')).body.threads
    expect(all.map((each: any) => each.id).sort()).toEqual(threads.sort())
  })
})
