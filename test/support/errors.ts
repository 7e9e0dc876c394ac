import { expect } from 'bun:test'
import type { Answer } from './client.ts'

/** Stands in bad values: an answer that has it repeats what it was sent. */
export const SECRET = 'hunter2-secret'

/** The answer is an error of ours with this status, code and field, with nothing of a stack or of what was sent. */
export function expectError(
  { status, headers, body }: Answer,
  expected: { status?: number; code?: string; field?: string } = {},
) {
  expect(body).toEqual({
    error: expect.objectContaining({ code: expect.stringMatching(/^[a-z_]+$/), message: expect.any(String) }),
    message: body?.error?.message,
  })
  expect(body.message).not.toBe('')
  expect(headers.get('content-type')).toContain('application/json')
  expect(JSON.stringify(body)).not.toContain(SECRET)
  expect(JSON.stringify(body)).not.toMatch(/ at |node_modules|\.ts:|elysia|typebox/i)
  const { status: wanted = 400, code = 'invalid_request', field } = expected
  expect({ status, code: body.error.code, ...(field && { field: body.error.field }) }).toEqual({
    status: wanted,
    code,
    ...(field && { field }),
  })
  if (field) expect(body.message).toStartWith(field.split('.')[0]!)
}
