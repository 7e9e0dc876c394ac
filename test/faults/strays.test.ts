import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { command, useServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const server = useServer()

const strays = async (action: string, ...args: string[]) =>
  await command(['strays', action, ...args, '--data-dir', server.dataDirectory])

/** Works on the database while no server has it. */
function change(statement: string): void {
  const db = new Database(join(server.dataDirectory, 'threadbox.db'))
  db.run('pragma foreign_keys = on')
  db.run(statement)
  db.close()
}

/** A sandbox whose row is lost, as when an older database was put back. Its environment. */
async function lose(): Promise<string> {
  const sandboxId = await server.sandbox({ files: { '/home/user/work.txt': 'days of it' } })
  const { body } = await server.ask('GET', `/v1/sandboxes/${sandboxId}`)
  await server.stop()
  change(`delete from sandboxes where id = '${sandboxId}'`)
  await server.start()
  await until(() => server.stderr.includes(`${body.sandboxId} has no sandbox here, and is kept for a week`))
  return body.sandboxId
}

const isThere = (environmentId: string) => existsSync(join(server.dataDirectory, 'sandboxes', environmentId))

test('an environment that the database does not know is kept, and can be given a sandbox with all its files', async () => {
  const environmentId = await lose()
  expect((await strays('list', '--json')).stdout).toContain(environmentId)
  const unknown = await strays('adopt', environmentId, '--agent', 'nobody')
  expect(unknown).toMatchObject({ stdout: '', stderr: expect.stringContaining('has no agent "nobody"') })
  const { stdout, code } = await strays('adopt', environmentId, '--agent', 'echo')
  expect(code).toBe(0)
  const sandboxId = stdout.trim()
  expect((await server.exec(sandboxId, 'cat work.txt')).stdout).toBe('days of it')
  expect((await strays('list')).stdout).toBe('')
  // Another start sees nothing in it.
  await server.stop()
  await server.start()
  expect((await server.exec(sandboxId, 'cat work.txt')).stdout).toBe('days of it')
  expect((await server.ask('DELETE', `/v1/sandboxes/${sandboxId}`)).status).toBe(204)
  expect(isThere(environmentId)).toBe(false)
})

test('after a week it is removed', async () => {
  const environmentId = await lose()
  await server.stop()
  await server.start()
  expect(isThere(environmentId)).toBe(true)
  await server.stop()
  const weekAgo = new Date(Date.now() - 7 * 86_400_000 - 1000).toISOString()
  change(`update stray_environments set found_at = '${weekAgo}'`)
  await server.start()
  await until(() => server.stderr.includes(`${environmentId} had no sandbox for a week, and is removed`))
  expect(isThere(environmentId)).toBe(false)
})
