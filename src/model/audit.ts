import type { Cause } from './observation.ts'

/** Whoever did something. It is empty when the server itself did it. */
export interface AuditActor extends Cause {
  /** A command that ran beside the server, such as `keys create`. */
  command?: string
  /** The uid of the user who ran the command. */
  uid?: number
}

/** Only ids and names: no content, no command line, no variable's value, no header. */
type Names = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>

/** An action, before it has its place in the chain. */
export interface AuditFact {
  /** Absent for the present time. */
  time?: string
  /** Absent when no team is concerned. */
  teamId?: string
  actor: AuditActor
  /** The action, such as `key.created`. */
  action: string
  /** The objects of the action. */
  target: Names
  /** The outcome, such as `done`, `refused` or `failed`. */
  outcome: string
  /** Further details. */
  detail?: Names
}

/** One link of the chain. */
export interface AuditLink {
  seq: number
  /** The text that is hashed: an `AuditRow` as canonical JSON. */
  entry: string
  /** The SHA-256, in hex, of the hash before it, a line feed and the entry. */
  hash: string
}

/** The content of an entry. */
export type AuditRow = AuditFact & { seq: number; time: string }

/** A place in the chain. Its hash fixes everything before it. */
export interface AuditHead {
  seq: number
  hash: string
  time: string
}

/** A page of a team's rows, newest first. */
export interface AuditPage {
  teamId?: string
  limit: number
  /** The `seq` of the last row on the page before. */
  before?: number
  /** An action, or the first word of actions: `key` includes `key.created`. */
  action?: string
  /** Not before this moment. */
  since?: string
  /** Before this moment. */
  until?: string
}
