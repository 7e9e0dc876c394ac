import { describeBackend as describe } from '../../src/plugin-suite/backend.ts'
import { bunKit } from '../support/kit.ts'

/** The contract of backends, as tests of bun:test. */
export const describeBackend = describe.bind(undefined, bunKit)
