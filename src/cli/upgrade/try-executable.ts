import { mkdtempSync, rmSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copySchema, readSchema } from '../../db/copy-schema.ts'
import { wordsOf } from '../../errors.ts'

const WITHIN_MS = 60_000
const ELF = '7f454c46'
/** The machine's number in an ELF header, by Node's name of the machine. */
const machines: Readonly<Record<string, number>> = { x64: 62, arm64: 183 }
const HEAD_BYTES = 20
const MACHINE_AT = 18

/** How a running server was started. */
export interface StartedWith {
  words: readonly string[]
  env: Readonly<Record<string, string>>
  cwd: string
}

/**
 * Returns an executable's version. Throws an error that says why it cannot be a threadbox for this machine; `name` is its name in
 * that text.
 */
export async function tryVersion(path: string, name: string): Promise<string> {
  const head = Buffer.alloc(HEAD_BYTES)
  const file = await open(path, 'r')
  await file.read(head, 0, HEAD_BYTES, 0).finally(() => file.close())
  if (head.toString('hex', 0, ELF.length / 2) !== ELF) throw new Error(`${name} is no executable of Linux`)
  if (head.readUInt16LE(MACHINE_AT) !== machines[process.arch]) throw new Error(`${name} is not for ${process.arch}`)
  const { code, said } = await run(path, ['version'])
  const [version = ''] = said.split('\n')
  if (code !== 0 || !/^\d+\.\d+\.\d/.test(version))
    throw new Error(`${name}: its version cannot be asked: ${said || `exit code ${code}`}`)
  return version
}

/**
 * Explains why an executable cannot use a database, without touching it. Undefined when it can, and when there is no database.
 */
export async function findSchemaFault(path: string, database: string): Promise<string | undefined> {
  if (readSchema(database) === undefined) return undefined
  const directory = mkdtempSync(join(tmpdir(), 'threadbox-upgrade-'))
  try {
    copySchema(database, join(directory, 'threadbox.db'))
    const { code, said } = await run(path, ['keys', 'list', '--quiet', '--data-dir', directory])
    return code === 0 ? undefined : said.replaceAll(directory, 'the copy of its schema')
  } finally {
    rmSync(directory, { recursive: true })
  }
}

/** Runs an executable's `doctor` with the settings of a server. Throws what it finds wrong. */
export async function tryDoctor(path: string, server: StartedWith): Promise<void> {
  const settings = server.words.slice(server.words.indexOf('serve') + 1)
  const { code, said } = await run(path, ['doctor', ...settings], server)
  if (code !== 0) throw new Error(`it would not start with the settings of the server:\n${said}`)
}

/** Runs a command to its end. */
async function run(path: string, args: string[], { env, cwd }: Partial<StartedWith> = {}) {
  try {
    const child = Bun.spawn([path, ...args], {
      env: env ?? { PATH: process.env.PATH ?? '/usr/sbin:/usr/bin:/sbin:/bin' },
      cwd: cwd ?? '/',
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: WITHIN_MS,
      killSignal: 'SIGKILL',
    })
    const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    return { code, said: `${out}${error}`.trim() }
  } catch (error) {
    return { code: -1, said: wordsOf(error) }
  }
}
