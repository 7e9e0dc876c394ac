/** The part of bun:test, or of any other runner, that the contract suites use. */
export interface Kit {
  describe(title: string, define: () => void): void
  test: Test
  expect: Expect
  beforeAll: Hook
  afterAll: Hook
}

type Hook = (run: () => Promise<void>, timeoutMs?: number) => void

export interface Test {
  (title: string, run: () => void | Promise<void>, timeoutMs?: number): void
  /** Defines one test for each row; `%s` in the title is the row's first value. */
  each<Row extends readonly unknown[]>(
    rows: readonly Row[],
  ): (title: string, run: (...row: Row) => void | Promise<void>, timeoutMs?: number) => void
  /** Defines a test that runs when the condition is true, and is skipped otherwise. */
  if(isSo: boolean): (title: string, run: () => void | Promise<void>, timeoutMs?: number) => void
}

export type Expect = (value: unknown) => Matchers<void> & {
  not: Matchers<void>
  /** For promises. Must be awaited. */
  rejects: Matchers<void | Promise<void>>
}

/** The matchers that bun:test and Jest share. */
interface Matchers<Result> {
  toBe(wanted: unknown): Result
  toBeGreaterThan(bound: number): Result
  toBeLessThan(bound: number): Result
  toBeUndefined(): Result
  toContain(wanted: unknown): Result
  toContainEqual(wanted: unknown): Result
  toEqual(wanted: unknown): Result
  toHaveLength(length: number): Result
  toMatch(wanted: string | RegExp): Result
  toMatchObject(wanted: object): Result
}
