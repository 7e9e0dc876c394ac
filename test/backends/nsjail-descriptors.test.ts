import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, readSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copyDescriptor, openProcess } from '../../plugins/nsjail/host/process.ts'
import { openGuestDescriptors } from '../../plugins/nsjail/jail/guest-descriptors.ts'
import type { GuestDescriptors } from '../../src/guest/host/guest-descriptors.ts'
import { takeDescriptor } from '../../src/guest/host/guest-descriptors.ts'
import { exhaustDescriptors } from '../support/descriptor-limit.ts'
import { openTestSandbox, type TestSandbox } from '../support/sandbox.ts'
import { until } from '../support/until.ts'

const directory = mkdtempSync(join(tmpdir(), 'threadbox-descriptors-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const own = () => readdirSync('/proc/self/fd').length

/** A process that has a file at 7, a pipe at 8 and a directory at 9. */
async function openHolder() {
  const [file, pipe] = [join(directory, 'file'), join(directory, 'pipe')]
  writeFileSync(file, 'what it has open')
  const command = 'rm -f "$2"; mkfifo "$2"; exec 7<"$1" 8<>"$2" 9</; echo; read _'
  const child = Bun.spawn(['bash', '-c', command, 'bash', file, pipe], { stdin: 'pipe', stdout: 'pipe' })
  await child.stdout.getReader().read()
  const process = openProcess(child.pid)
  return {
    from: {
      take: number => copyDescriptor(process, number),
      maxFileBytes: () => 0,
      pendingBytes: () => 0,
      widenPipe() {},
      close: process.close,
    } satisfies GuestDescriptors,
    async end() {
      process.close()
      child.stdin.end()
      await child.exited
    },
  }
}

describe('a descriptor of another process', () => {
  test('is copied by its number, and closed on exec', async () => {
    const { from, end } = await openHolder()
    const file = takeDescriptor(from, 7, 'file')
    const bytes = Buffer.alloc(4)
    readSync(file.number, bytes, 0, 4, 5)
    expect(bytes.toString()).toBe('it h')
    const flags = Number.parseInt(
      /flags:\s*(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${file.number}`, 'utf8'))?.[1] ?? '',
      8,
    )
    expect(flags & 0o2000000).toBe(0o2000000)
    file.close()
    await end()
  })

  test('is refused when it is of another kind, and what was copied is closed: regression', async () => {
    const { from, end } = await openHolder()
    const before = own()
    for (const [number, kind] of [
      [8, 'file'],
      [9, 'file'],
      [7, 'pipe'],
      [9, 'pipe'],
      [7, 'socket'],
      [8, 'socket'],
    ] as const) {
      expect(() => takeDescriptor(from, number, kind), `${number} as a ${kind}`).toThrow(`no ${kind}`)
    }
    await until(() => own() === before)
    await end()
  })

  test('is refused when there is none of that number: regression', async () => {
    const { from, end } = await openHolder()
    const before = own()
    for (const number of [4_000, -1, 1.5, 2 ** 31, 2 ** 32 + 7, Number.NaN, '7', undefined, null]) {
      expect(() => takeDescriptor(from, number, 'file'), String(number)).toThrow()
    }
    expect(own()).toBe(before)
    await end()
  })
})

describe('the guest of a jail', () => {
  let sandbox: TestSandbox
  let nsjail: number
  beforeAll(async () => {
    sandbox = await openTestSandbox()
    nsjail = Number(
      readdirSync('/proc').find(pid => {
        if (!/^\d+$/.test(pid)) return false
        const command = readText(`/proc/${pid}/cmdline`)
        return command.includes('nsjail\0') && command.includes(`/${sandbox.environment.id}/`)
      }),
    )
  })
  afterAll(() => sandbox.close())

  test('lets the server copy its descriptors', () => {
    const before = own()
    const descriptors = openGuestDescriptors(nsjail)
    if (!descriptors) throw new Error('they could not be copied')
    // Where it listens for the server.
    const socket = takeDescriptor(descriptors, 3, 'socket')
    expect(readlinkSync(`/proc/self/fd/${socket.number}`)).toStartWith('socket:')
    socket.close()
    descriptors.close()
    expect(own()).toBe(before)
  })

  test('keeps nothing open in the server when its sandbox is gone', async () => {
    const before = own()
    const other = await openTestSandbox()
    expect(await other.shell('echo here')).toBe('here\n')
    await other.close()
    await until(() => own() <= before)
  })

  test('is used only when the bound of its files can be read too, so an upload succeeds with few descriptors', async () => {
    const { files } = sandbox.environment
    const bytes = Buffer.alloc(700_000, 'x')
    for (const free of [0, 1, 2]) {
      const body = new Response(bytes).body!
      const restore = exhaustDescriptors(free)
      try {
        expect(await files.write('/home/user/upload', body)).toBe(bytes.length)
      } finally {
        restore()
      }
    }
  })

  test('is not found where no jail runs', async () => {
    const before = own()
    const child = Bun.spawn(['true'], { stdio: ['ignore', 'ignore', 'ignore'] })
    await child.exited
    expect(openGuestDescriptors(child.pid)).toBeUndefined()
    expect(own()).toBe(before)
  })
})

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
