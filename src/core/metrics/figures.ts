import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { version } from '../../../package.json'
import { countSandboxes } from '../../db/count-sandboxes.ts'
import type { Runtime } from '../runtime.ts'
import { type Family, gauge, type Point } from './series.ts'

const MB = 1024 * 1024
const one = (value: number): Point[] => [{ labels: [], value }]

/** The server's present state as figures. */
export async function serverFamilies(runtime: Runtime): Promise<Family[]> {
  const { runs, spares, loop, egress } = runtime
  const { active, readers } = runs.count()
  const { sent, received } = egress.movedBytes()
  const delay = loop?.delayMs()
  return [
    gauge({ name: 'threadbox.build.info', help: 'The version that runs.', unit: '', labelNames: ['version'] }, [
      { labels: [version], value: 1 },
    ]),
    gauge(
      {
        name: 'threadbox.sandboxes',
        help: 'Sandboxes by state.',
        unit: '{sandbox}',
        labelNames: ['state', 'backend', 'isolation'],
      },
      sandboxPoints(runtime),
    ),
    gauge(plain('threadbox.spares', 'Sandboxes that stand ready.', '{sandbox}'), one(spares.count())),
    gauge(plain('threadbox.runs.active', 'Runs under way.', '{run}'), one(active)),
    gauge(plain('threadbox.stream.readers', 'Readers of running replies.', '{reader}'), one(readers)),
    gauge(
      {
        name: 'threadbox.event_loop.lag',
        help: 'How late the event loop was in the last minute.',
        unit: 's',
        labelNames: ['stat'],
      },
      Object.entries(delay ?? {}).map(([stat, ms]) => ({ labels: [stat], value: ms / 1000 })),
    ),
    {
      name: 'threadbox.proxy',
      help: 'Bytes between sandboxes and what they reached.',
      unit: 'By',
      labelNames: ['direction'],
      kind: 'counter',
      points: [
        { labels: ['sent'], value: sent },
        { labels: ['received'], value: received },
      ],
    },
    ...(await databaseFamilies(runtime)),
  ]
}

const plain = (name: string, help: string, unit: string) => ({ name, help, unit, labelNames: [] })

/** A backend that cannot tell what runs has the state `unknown`. */
function sandboxPoints({ db, backends, environments }: Runtime): Point[] {
  const names = [...backends.keys()]
  const running = names.flatMap(name => [...(environments.findRunning(name) ?? [])])
  const counted = countSandboxes(db, running)
  return counted.flatMap(({ backend, isolation, total, running }) => {
    const place = [backend, isolation ?? backends.get(backend)?.isolation ?? 'unknown']
    return backends.get(backend)?.listRunning
      ? [
          { labels: ['running', ...place], value: running },
          { labels: ['stopped', ...place], value: total - running },
        ]
      : [{ labels: ['unknown', ...place], value: total }]
  })
}

async function databaseFamilies({ config, diskSpace }: Runtime): Promise<Family[]> {
  const path = join(config.dataDirectory, 'threadbox.db')
  const sizeOf = (file: string) =>
    stat(file).then(
      ({ size }) => size,
      () => 0,
    )
  const [size, wal] = await Promise.all([sizeOf(path), sizeOf(`${path}-wal`)])
  return [
    gauge(plain('threadbox.database.size', 'Size of the database.', 'By'), one(size)),
    gauge(plain('threadbox.database.wal.size', "Size of the database's log.", 'By'), one(wal)),
    gauge(plain('threadbox.disk.free', "Free on the data directory's disk.", 'By'), one(diskSpace.state.freeMb * MB)),
  ]
}
