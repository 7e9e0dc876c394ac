import { EVENTS_A_SECOND, type Measured, type MeasuredKey } from './rows.ts'

/** The room that the machine has when the bench begins. */
export interface Room {
  /** Memory that programs could still get. */
  memoryMb: number
  /** Free space on the disk with the data directory. */
  diskMb: number
}

/** A figure that was not measured but calculated, and how. */
export interface Calculated {
  key: string
  name: string
  unit: '' | '/s' | 'GB/day' | 'MB'
  value: number
  /** The calculation with its numbers. */
  arithmetic: string
}

const MB_A_GIB = 1024
const KB_A_GB = 1024 * 1024
const SECONDS_A_DAY = 86_400
const RESUMED_SECONDS = 600

/** Calculates what follows from the figures. A line whose figures are missing, or too small to divide by, is left out. */
export function extrapolate(measured: Measured, room: Room): Calculated[] {
  const find = (key: MeasuredKey) => measured[key]?.value
  const lines: Calculated[] = []
  const add = (
    ...[key, name, unit, needs, calculate]: [
      string,
      string,
      Calculated['unit'],
      readonly MeasuredKey[],
      (...figures: number[]) => [number, string],
    ]
  ) => {
    const figures = needs.map(find).filter(value => value !== undefined)
    if (figures.length < needs.length || figures.some(value => value <= 0)) return
    const [value, arithmetic] = calculate(...figures)
    lines.push({ key, name, unit, value, arithmetic })
  }
  const whole = Math.floor
  add('active-gib', 'active sandboxes a GiB of memory', '', ['active'], (mb = 0) => [
    whole(MB_A_GIB / mb),
    `1,024 MB ÷ ${show(mb)} MB`,
  ])
  add('active-here', 'active sandboxes here', '', ['active', 'idle'], (mb = 0, idle = 0) => [
    Math.max(0, whole((room.memoryMb - idle) / mb)),
    `(${show(room.memoryMb)} MB available − ${show(idle)} MB of the server) ÷ ${show(mb)} MB; what their commands take comes on top`,
  ])
  add('stopped-gib', 'stopped sandboxes a GiB of disk', '', ['stopped'], (mb = 0) => [
    whole(MB_A_GIB / mb),
    `1,024 MB ÷ ${show(mb)} MB`,
  ])
  add('stopped-here', 'stopped sandboxes here', '', ['stopped'], (mb = 0) => [
    whole(room.diskMb / mb),
    `${show(room.diskMb)} MB free ÷ ${show(mb)} MB; the files in them come on top`,
  ])
  add('chats-most', 'chats a second, at most', '/s', ['chat-cpu'], (ms = 0) => [
    1000 / ms,
    `1,000 ms ÷ ${show(ms)} ms: the server computes on one core`,
  ])
  add('readers-most', 'readers at once, by CPU', '', ['reader-cpu'], (us = 0) => [
    whole(1e6 / (us * EVENTS_A_SECOND)),
    `1,000,000 µs ÷ (${show(us)} µs × ${EVENTS_A_SECOND} events a second)`,
  ])
  add('readers-gib', 'readers a GiB of memory', '', ['reader-memory'], (kb = 0) => [
    whole(KB_A_GB / kb),
    `1,048,576 KB ÷ ${show(kb)} KB`,
  ])
  add(
    'database-day',
    'growth of the database at the rate above',
    'GB/day',
    ['chat-kept', 'chats'],
    (kb = 0, rate = 0) => [(kb * rate * SECONDS_A_DAY) / KB_A_GB, `${show(kb)} KB × ${show(rate)}/s × 86,400 s`],
  )
  add(
    'database-fresh',
    'of it for resuming, at that rate',
    'MB',
    ['chat-fresh', 'chat-kept', 'chats'],
    (fresh = 0, kept = 0, rate = 0) => [
      (Math.max(0, fresh - kept) * rate * RESUMED_SECONDS) / 1024,
      `(${show(fresh)} − ${show(kept)}) KB × ${show(rate)}/s × 600 s, always`,
    ],
  )
  add('database-chats', 'chats a GiB of the database', '', ['chat-kept'], (kb = 0) => [
    whole(KB_A_GB / kb),
    `1,048,576 KB ÷ ${show(kb)} KB`,
  ])
  return lines
}

/** Shows a number with three digits, or with all digits before the point. */
export function show(value: number): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}
