/** A group of figures that are measured together, or left out together. */
export type Group = 'sandboxes' | 'chats' | 'readers'

export interface MeasuredRow {
  group: Group
  name: string
  unit: 'MB' | '/s' | 'ms' | 'KB' | 'µs'
  /** How the figure is measured. */
  taken: string
}

/** How many words the agent echo sends each second to a reader of `/slow`. */
export const EVENTS_A_SECOND = 20

const row = (group: Group, name: string, unit: MeasuredRow['unit'], taken: string): MeasuredRow => ({
  ...{ group, name, unit, taken },
})

/** What is measured, in the order of the table. */
export const measuredRows = {
  idle: row('sandboxes', 'idle server, memory', 'MB', 'resident, after one request and 1.5 s'),
  active: row('sandboxes', 'one more active sandbox, memory', 'MB', 'private to its processes and to the server'),
  stopped: row('sandboxes', 'one more stopped sandbox, disk', 'MB', 'blocks of the data directory; it has run `true`'),
  chats: row(
    'chats',
    'chats',
    '/s',
    'of agent echo, 50 words each way, in threads of five; the client is on this machine too',
  ),
  'chat-cpu': row('chats', 'a chat, CPU of the server', 'ms', 'user and system time of its process'),
  'chat-fresh': row(
    'chats',
    'a chat in the database, first',
    'KB',
    'with the log by which a reply is resumed, for ten minutes',
  ),
  'chat-kept': row(
    'chats',
    'a chat in the database, later',
    'KB',
    'with that log compressed; it is kept for a week, at most 512 MB of all',
  ),
  'reader-cpu': row(
    'readers',
    'an event to a reader, CPU of the server',
    'µs',
    `of a reply with ${EVENTS_A_SECOND} events a second`,
  ),
  'reader-memory': row('readers', 'one more reader, memory of the server', 'KB', 'resident, while it reads'),
} as const

export type MeasuredKey = keyof typeof measuredRows

/** The figures with their numbers of samples. A key is missing when its figure was not measured. */
export type Measured = Partial<Record<MeasuredKey, { value: number; n: number }>>
