import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { Kit } from '../../src/plugin-suite/kit.ts'

/** What contract suites need of bun:test. */
export const bunKit: Kit = { describe, test, expect, beforeAll, afterAll }
