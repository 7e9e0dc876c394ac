import { createKey } from '../../src/core/access/keys.ts'
import type { TestApp } from '../support/app.ts'
import type { Answer } from '../support/client.ts'

/** What E2B's SDKs need to use an app as a team. */
export interface E2bOptions {
  apiKey: string
  apiUrl: string
  sandboxUrl: string
}

export function e2bOptions(app: TestApp, team = 'default', limits?: Record<string, string>): E2bOptions {
  const { key } = createKey(app.runtime.db, { team, name: 'e2b', isForE2b: true, ...(limits && { limits }) })
  return { apiKey: key, apiUrl: app.url, sandboxUrl: app.url }
}

/** One request in the words of E2B's API. */
export async function call(
  { apiKey, apiUrl }: E2bOptions,
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(apiUrl + path, {
    method,
    headers: { 'x-api-key': apiKey, ...(body && { 'content-type': 'application/json' }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
    redirect: 'manual',
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text }
}
