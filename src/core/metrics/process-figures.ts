import { readdir, readFile } from 'node:fs/promises'
import { type Family, gauge, type Point } from './series.ts'

const about = (name: string, help: string, unit: string) => ({ name, help, unit, labelNames: [] })
const one = (value: number): Point[] => [{ labels: [], value }]

/** The resources that this process uses, under the names of Prometheus' own libraries. */
export async function processFamilies(): Promise<Family[]> {
  const { user, system } = process.cpuUsage()
  const [descriptors, limits] = await Promise.all([
    readdir('/proc/self/fd'),
    readFile('/proc/self/limits', 'utf8').catch(() => ''),
  ])
  const most = /^Max open files\s+(\d+)/m.exec(limits)?.[1]
  const cpu = about('process.cpu', 'User and system CPU time.', 's')
  return [
    { ...cpu, kind: 'counter', points: one((user + system) / 1e6) },
    gauge(about('process.resident_memory', 'Memory that is in RAM.', 'By'), one(process.memoryUsage.rss())),
    gauge(about('process.open_fds', 'Open descriptors.', '{descriptor}'), one(descriptors.length)),
    gauge(about('process.max_fds', 'Most open descriptors.', '{descriptor}'), most ? one(Number(most)) : []),
    gauge(about('process.start_time', 'Start, since 1970.', 's'), one(performance.timeOrigin / 1000)),
  ]
}
