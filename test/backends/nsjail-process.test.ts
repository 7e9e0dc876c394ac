import { expect, test } from 'bun:test'
import { join } from 'node:path'

const host = join(import.meta.dir, '../../plugins/nsjail/host')

/** Asks often, while a timer sends a signal every 50 microseconds. */
const program = `
import { dlopen, ptr } from 'bun:ffi'
import { hasEnded, openProcess } from '${host}/process.ts'
const ITIMER_REAL = 0
const { symbols } = dlopen('libc.so.6', { setitimer: { args: ['i32', 'pointer', 'pointer'], returns: 'i32' } })
process.on('SIGALRM', () => {})
symbols.setitimer(ITIMER_REAL, ptr(BigInt64Array.of(0n, 50n, 0n, 50n)), null)
const own = openProcess(process.pid)
let ended = 0
for (let asked = 0; asked < 200_000; asked++) if (hasEnded(own)) ended++
console.log(ended)
process.exit(0)
`

test('a process that runs has not ended, whatever signals the server gets: regression', async () => {
  const child = Bun.spawn([process.execPath, '-e', program], { stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  expect({ stdout, stderr }).toEqual({ stdout: '0\n', stderr: '' })
})
