import { expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'

const app = useApp()

test('a database that can take no more is 507, says what there is no room for, and the server goes on when it can', async () => {
  const [id, unwanted] = [await app.sandbox(), await app.sandbox()]
  const threads = `/v1/sandboxes/${id}/threads`
  const { db } = app.runtime
  const { page_count: pages } = db.query<{ page_count: number }, []>('pragma page_count').get()!
  db.run(`pragma max_page_count = ${pages}`)
  const name = 'x'.repeat(200)
  let refused = await app.ask('POST', threads, { name })
  for (let left = 1000; left > 0 && refused.status === 201; left--) refused = await app.ask('POST', threads, { name })
  expect([refused.status, refused.body.error.code]).toEqual([507, 'disk_full'])
  expect(refused.body.message).toContain("no room on the server's disk")
  expect((await app.ask('GET', `/v1/sandboxes/${id}`)).status).toBe(200)
  expect((await app.ask('GET', threads)).status).toBe(200)
  expect((await app.exec(id, 'echo on')).stdout).toBe('on\n')
  // What makes room is never refused.
  expect((await app.ask('DELETE', `/v1/sandboxes/${unwanted}`)).status).toBe(204)
  db.run('pragma max_page_count = 4294967294')
  expect((await app.exec(id, 'echo on')).stdout).toBe('on\n')
  expect((await app.ask('POST', threads, { name })).status).toBe(201)
})
