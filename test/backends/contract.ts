import { describeBackend as describe } from '../../src/contract/backend.ts'
import { bunKit } from '../support/kit.ts'

/** The contract of backends, as tests of bun:test. */
export const describeBackend = describe.bind(undefined, bunKit)
