import { readFileSync, statfsSync } from 'node:fs'
import type { Room } from './extrapolate.ts'

const MB = 1024 * 1024

/** Finds how much disk and memory this machine has left. */
export function lookAtRoom(directory: string): Room {
  const { bavail, bsize } = statfsSync(directory)
  const available = /^MemAvailable: +(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]
  return { memoryMb: Math.floor(Number(available ?? 0) / 1024), diskMb: Math.floor((bavail * bsize) / MB) }
}
