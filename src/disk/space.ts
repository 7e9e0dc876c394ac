import { rmSync, statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { noSpace } from '../errors.ts'
import type { DiskLevel, DiskSpace, DiskState } from '../plugin-api/disk-space.ts'

const MB = 1024 * 1024
/** Without a setting: so much, or this part of a smaller file system. */
const DEFAULT_RESERVE_MB = 512
const DEFAULT_PART = 20
/** What is lost again at once is not yet enough. */
const ENOUGH_AGAIN = 1.1
const MAX_BALLAST_MB = 64
const BALLAST_PART = 4

/** Near the reserve looks are frequent: a sandbox that writes fast must be stopped before the reserve is used up. */
const LOOK_EVERY_MS = 1000
const LOOK_OFTEN_MS = 100
const NEAR = 4
/** How long it takes to meet what fills the disk: near the reserve, what will be gone by then is gone. */
const AHEAD_MS = 400
const RATE_OVER_MS = 50

export interface DiskSpaceOptions {
  directory: string
  /** What is to stay free; 0 looks at nothing. */
  reserveMb?: number | undefined
  log(line: string): void
}

export interface OpenDiskSpace extends DiskSpace {
  close(): void
}

/**
 * Watches the file system of a directory, which exists. A file there, the ballast, takes a part of the reserve: when other
 * programs take the rest too, it is removed, so that there is room for what frees more, as the deletion of a sandbox.
 */
export async function openDiskSpace({ directory, reserveMb, log }: DiskSpaceOptions): Promise<OpenDiskSpace> {
  const ballast = join(directory, 'ballast')
  const listeners = new Set<(state: DiskState) => void>()
  const { blocks, bsize } = statfsSync(directory)
  const reserve = reserveMb === undefined ? defaultReserve(blocks * bsize) : reserveMb * MB
  const ballastBytes = Math.min(MAX_BALLAST_MB * MB, Math.floor(reserve / BALLAST_PART / MB) * MB)
  let state: DiskState = { level: 'enough', freeMb: 0, reserveMb: Math.ceil(reserve / MB) }
  let timer: NodeJS.Timeout | undefined
  let last: { free: number; at: number; perMs: number } | undefined
  let isClosed = false

  /** What will be free soon, as it goes on now. */
  const expected = (free: number): number => {
    const at = performance.now()
    const elapsed = last ? at - last.at : 0
    if (!last || elapsed > LOOK_EVERY_MS * 2) last = { free, at, perMs: 0 }
    else if (elapsed >= RATE_OVER_MS) last = { free, at, perMs: Math.max(0, last.free - free) / elapsed }
    return free - last.perMs * AHEAD_MS
  }

  const look = async (): Promise<DiskState> => {
    // This takes microseconds. Away from the event loop, a create would wait longer for its turn.
    const { bavail, bsize: size } = statfsSync(directory)
    const held = sizeOf(ballast)
    const free = bavail * size + held
    const before = state.level
    const level =
      reserve === 0 ? 'enough' : levelOf(free, free < reserve * NEAR ? expected(free) : free, reserve, before)
    state = { ...state, level, freeMb: Math.floor(free / MB) }
    if (held > 0 && bavail * size < ballastBytes) rmSync(ballast, { force: true })
    if (level !== before) log(describe(state))
    if (level !== 'enough' || before !== 'enough') for (const listener of listeners) listener(state)
    return state
  }

  const ballastUnlessNear = ({ freeMb, reserveMb }: DiskState) => {
    if (!isClosed && freeMb >= reserveMb * NEAR && sizeOf(ballast) < ballastBytes) layBallast(ballast, ballastBytes)
  }

  const plan = () => {
    if (isClosed || reserve === 0) return
    const isNear = state.freeMb < state.reserveMb * NEAR
    timer = setTimeout(
      () =>
        look()
          .then(ballastUnlessNear)
          .catch(() => {})
          .then(plan),
      isNear ? LOOK_OFTEN_MS : LOOK_EVERY_MS,
    )
    timer.unref()
  }

  await look()
  plan()
  return {
    get state() {
      return state
    },
    look,
    async assertEnough() {
      const { level } = await look()
      if (level !== 'enough') throw noSpace(state)
    },
    watch(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

const describe = ({ level, freeMb, reserveMb }: DiskState) =>
  level === 'enough'
    ? `the disk of the data directory has room again: ${freeMb} MB`
    : `the disk of the data directory is ${level}: ${freeMb} MB of it are free, ${reserveMb} MB are kept free`

const defaultReserve = (bytes: number) => Math.min(DEFAULT_RESERVE_MB * MB, bytes / DEFAULT_PART)

function levelOf(free: number, soon: number, reserve: number, before: DiskLevel): DiskLevel {
  if (free < reserve / 2 || (before === 'full' && free < (reserve / 2) * ENOUGH_AGAIN)) return 'full'
  return soon < reserve || (before !== 'enough' && soon < reserve * ENOUGH_AGAIN) ? 'low' : 'enough'
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

/** Without zeros being written. A file system that cannot do that has no ballast. */
function layBallast(path: string, bytes: number): void {
  if (bytes === 0) return
  const made = Bun.spawnSync(['fallocate', '--length', String(bytes), path], { stdio: ['ignore', 'ignore', 'ignore'] })
  if (!made.success) rmSync(path, { force: true })
}
