/** The parts that a program inside a sandbox works with. */
export interface Attempt {
  /** A directory of the host with the files `secret` and `target`, which everybody there may write. */
  readonly hostDirectory: string
  /** The content of both files, which the other sandbox keeps too. It is passed reversed, so that nothing else inside contains it. */
  readonly secret: string
  /** The word by which the other sandbox names its files, sockets and processes. */
  readonly peer: string
  /** The arguments that the probe passes. */
  readonly words: readonly string[]
  /** Reports one thing that got through, in one line. */
  found(line: string): void
  /**
   * Reports a call that succeeds. A system call that fails with an errno other than EPERM, EACCES and ENOSYS reached the kernel, which is
   * reported too, unless `rightly` has the errno. Any other error with a code counts as a refusal. Throws errors without a code.
   */
  refused(what: string, call: () => unknown, rightly?: readonly string[]): void
  /** Reports the path when its file contains the secret. */
  seesNone(path: string): void
}

/** A program that tries to get out. It works in its own empty directory. It rejects when it could not try. */
export type Program = (attempt: Attempt) => void | Promise<void>

/** The programs of one area. The key is the second half of the probe's id. */
export type Programs = Readonly<Record<string, Program>>
