import type { Part } from '../part.ts'
import { cpuSeconds } from '../process-figures.ts'
import type { BenchServer } from '../server.ts'
import { MIB, speed, time } from '../time.ts'
import type { Transfer } from '../transfer.ts'

const LINE = '0123456789'.repeat(20)
/** The last event of an output that ended well. */
const ENDED_WELL = /"type":"exit","exitCode":0/

/** Measures the output of commands and processes, read as it comes. */
export const output: Part = {
  rounds: 2,
  async measure({ sizes, place, record }) {
    await using server = await place.serve()
    const sandbox = await server.create()
    const count = sizes.outputMib * MIB
    const command = `yes ${LINE} | head -c ${count}`
    const below = `/v1/sandboxes/${sandbox.id}`
    const headers = { 'content-type': 'application/json', accept: 'text/event-stream' }

    const pipe = [speed(count, await time(() => Bun.$`sh -c ${`${command} | cat > /dev/null`}`.quiet()))]
    const exec = await measure(server, count, () =>
      server.transfer(`${below}/exec`, { method: 'POST', headers, body: JSON.stringify({ command }) }),
    )
    record('exec-output', [exec.speed], pipe)
    record('exec-output-cpu', [exec.cpu])

    const { pid } = await server.ask<{ pid: number }>('POST', `${below}/processes`, { command, waitForReader: true })
    const ofProcess = await measure(server, count, () => server.transfer(`${below}/processes/${pid}/output`))
    record('process-output', [ofProcess.speed], pipe)
    record('process-output-cpu', [ofProcess.cpu])
    await server.delete(sandbox)
  },
}

async function measure(server: BenchServer, count: number, read: () => Promise<Transfer>) {
  const before = cpuSeconds(server.pid)
  const startedAt = performance.now()
  const { bytes, tail } = await read()
  const took = performance.now() - startedAt
  if (bytes < count || !ENDED_WELL.test(tail)) throw new Error(`${bytes} bytes of ${count} came: ${tail}`)
  return { speed: speed(count, took), cpu: (cpuSeconds(server.pid) - before) / (count / MIB / 1024) }
}
