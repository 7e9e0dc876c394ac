/** What a program inside a sandbox works with. */
export interface Attempt {
  /** A directory of the host with the files `secret` and `target`, which everybody there may write. */
  readonly hostDirectory: string
  /** What both files contain, and what the other sandbox keeps. It came backwards: nothing but these has it as it is. */
  readonly secret: string
  /** The word by which the other sandbox names its files, sockets and processes. */
  readonly peer: string
  /** What the probe gave along. */
  readonly words: readonly string[]
  /** Says one thing that got through, in a line. */
  found(line: string): void
  /**
   * Says so when the call succeeds. A system call that fails with another errno than EPERM, EACCES and ENOSYS was looked at, which
   * is said too, unless the errno is among `rightly`. What else throws with a code was refused. Rejects what is a mistake of ours.
   */
  refused(what: string, call: () => unknown, rightly?: readonly string[]): void
  /** Says so when the file at the path shows the secret. */
  seesNone(path: string): void
}

/** A program that tries to get out. It works in an empty directory of its own. Rejects when it could not try. */
export type Program = (attempt: Attempt) => void | Promise<void>

/** The programs of one area by the second half of their probe's id. */
export type Programs = Readonly<Record<string, Program>>
