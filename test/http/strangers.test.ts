import { expect, test } from 'bun:test'
import { createKey } from '../../src/core/access/keys.ts'
import { revokeKey } from '../../src/db/keys.ts'
import { ApiError } from '../../src/errors.ts'
import { createAuthenticationLog } from '../../src/http/authentication-log.ts'
import { useApp } from '../support/app.ts'

const app = useApp()

test('refused authentications leave a line with address and key, and no secret: regression', async () => {
  const { key, row } = createKey(app.runtime.db, { team: 'default', name: 'lost' })
  app.beside(db => revokeKey(db, row.id))
  const wrong = 'tbx_nobody-has-this-one'
  for (const each of [wrong, key]) {
    expect((await app.request('GET', '/v1/sandboxes', { key: each })).status).toBe(401)
  }
  expect((await app.request('GET', '/v1/sandboxes')).status).toBe(200)
  expect(app.log.filter(line => line.startsWith('unauthorized'))).toEqual([
    'unauthorized: 127.0.0.1: The API key is not known.',
    `unauthorized: 127.0.0.1, key ${row.id}: The API key was revoked.`,
  ])
  expect(app.log.join('\n')).not.toContain(wrong)
  expect(app.log.join('\n')).not.toContain(key)
})

test('many refused authentications are counted, not each written: regression', () => {
  const lines: string[] = []
  let now = 0
  const strangers = createAuthenticationLog(
    line => lines.push(line),
    () => now,
  )
  const refuse = () =>
    strangers.refused(new ApiError('unauthorized', 'The API key is not known.'), { address: '192.0.2.1', id: 'req_1' })
  for (let index = 0; index < 1000; index++) refuse()
  strangers.refused(new ApiError('not_found', 'There is no such endpoint.'), { address: '192.0.2.1', id: 'req_1' })
  expect(lines).toHaveLength(60)
  now = 60_000
  refuse()
  expect(lines.slice(60)).toEqual([
    'unauthorized: 940 more in the last minutes',
    'unauthorized: 192.0.2.1: The API key is not known.',
  ])
})
