import { beforeAll } from 'bun:test'
import * as newest from 'e2b'
import * as v2_8_1 from 'e2b-2.8.1'
import * as v2_24_0 from 'e2b-2.24.0'
import * as v2_31_0 from 'e2b-2.31.0'
import type { TestApp } from '../support/app.ts'
import { type E2bOptions, e2bOptions } from './client.ts'

/** What of E2B's SDK all of these versions have. */
export type Sdk = typeof newest

export const NEWEST = '2.51.0'

/** The versions that are tried. Their types differ in what these tests do not use. */
export const sdks: readonly [version: string, sdk: Sdk][] = [
  ['2.8.1', v2_8_1 as never],
  ['2.24.0', v2_24_0 as never],
  ['2.31.0', v2_31_0 as never],
  [NEWEST, newest],
]

/** The options of clients of an app, which are there once the app is. */
export function useOptions(app: TestApp): E2bOptions {
  const options = { apiKey: '', apiUrl: '', sandboxUrl: '' }
  beforeAll(() => void Object.assign(options, e2bOptions(app)))
  return options
}
