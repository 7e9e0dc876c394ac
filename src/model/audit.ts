import type { Cause } from './observation.ts'

/** Who or what did something. Empty: the server itself. */
export interface AuditActor extends Cause {
  /** A command beside the server, as `keys create`. */
  command?: string
  /** The system's user that ran it. */
  uid?: number
}

/** Ids and names alone: no content, no command line, no variable's value, no header. */
type Names = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>

/** Something that was done, before it has its place in the chain. */
export interface AuditFact {
  /** Absent: now. */
  time?: string
  /** Absent: it is no team's. */
  teamId?: string
  actor: AuditActor
  /** As `key.created`. */
  action: string
  /** What it was done to. */
  target: Names
  /** As `done`, `refused`, `failed`. */
  outcome: string
  /** What else is known of it. */
  detail?: Names
}

/** One link of the chain. */
export interface AuditLink {
  seq: number
  /** What the hash is of: an `AuditRow` as canonical JSON. */
  entry: string
  /** The SHA-256, in hex, of the hash before it, a line feed and the entry. */
  hash: string
}

/** What an entry says. */
export type AuditRow = AuditFact & { seq: number; time: string }

/** A place in the chain: all before it is fixed by its hash. */
export interface AuditHead {
  seq: number
  hash: string
  time: string
}

/** A page of a team's rows, newest first. */
export interface AuditPage {
  teamId?: string
  limit: number
  /** The `seq` of the last one of the page before. */
  before?: number
  /** An action, or the first word of actions: `key` stands for `key.created` too. */
  action?: string
  /** Not before this moment. */
  since?: string
  /** Before this moment. */
  until?: string
}
