import { readFileSync } from 'node:fs'
import type { Address } from '../backup/backup-place.ts'
import { createBackup } from '../backup/create.ts'
import type { Extracted } from '../backup/extract.ts'
import { timeOfFile } from '../backup/format.ts'
import { removeOld } from '../backup/keep.ts'
import { openAddress } from '../backup/place.ts'
import { restoreBackup, verifyBackup } from '../backup/restore.ts'
import type { Secrets } from '../backup/sealing.ts'
import { messageOf } from '../errors.ts'
import { readConfig } from '../start/config.ts'
import { openData } from '../start/data.ts'
import { openCopies } from '../start/plugins.ts'
import { type Given, UsageError } from './command-line.ts'
import { readPlace } from './data-place.ts'
import { keepCommand } from './keep-command.ts'
import { printList } from './list.ts'
import { createProgress } from './progress.ts'

/** Works beside a running server. Returns false when a backup was made, but a part of it is missing or an old one was not removed. */
export async function backup(given: Given): Promise<boolean> {
  switch (given.action) {
    case 'create':
      return await create(given)
    case 'list':
      await list(given)
      return true
    case 'verify':
      await verify(given)
      return true
    default:
      await restore(given)
      return true
  }
}

async function create(given: Given): Promise<boolean> {
  const { config } = await readPlace(given)
  const { dataDirectory } = config
  const to = openAddress(given.words[0] ?? '', process.env)
  const keep = { count: readNumber(given, 'keep'), days: readNumber(given, 'keep-days') }
  if (to.name !== undefined && (keep.count !== undefined || keep.days !== undefined)) {
    throw new UsageError('--keep, --keep-days: for a directory of backups, not for one file')
  }
  const progress = createProgress({ isQuiet: given.has('quiet') })
  const made = await createBackup({
    ...{ dataDirectory, to },
    sandboxes: readSandboxes(given),
    secrets: { ...readPassphrase(given), recipients: given.all('recipient') },
    sources: await openCopies(dataDirectory),
    onStep: progress.say,
  }).finally(() => progress.end())
  const { names: removed, problems } = await removeOld(
    to.place,
    { ...(keep.count !== undefined && { count: keep.count }), ...(keep.days !== undefined && { days: keep.days }) },
    new Date(),
  )
  await keepBackup(dataDirectory, 'backup create', { action: 'backup.created', target: { backup: made.backup } })
  const saved = made.sandboxes.filter(({ at }) => at !== undefined)
  const failed = [...made.sandboxes, ...made.snapshots].filter(
    ({ at, note = '' }) => at === undefined && note.includes('could not be saved'),
  )
  if (given.has('json')) console.log(JSON.stringify({ ...made, removed }, null, 2))
  else {
    for (const { id, frozenMs = 0, note } of made.sandboxes) {
      const how = note ?? (frozenMs > 0 ? `frozen for ${frozenMs} ms` : 'not running')
      if (!given.has('quiet')) console.log(`${id}\t${how}`)
    }
    for (const { id, note } of made.snapshots) if (note && !given.has('quiet')) console.log(`${id}\t${note}`)
    for (const name of removed) if (!given.has('quiet')) console.log(`${name} is removed`)
    const others = made.sandboxes.length - saved.length
    const more = others === 0 ? '' : `, without the files of ${others}`
    console.log(
      given.has('quiet')
        ? made.backup
        : `${made.backup}: ${toMb(made.bytes)}, ${countOf(saved.length, 'sandbox')}${more}`,
    )
  }
  for (const { id, note } of failed) console.error(`threadbox: ${id}: ${note}`)
  for (const problem of problems) console.error(`threadbox: ${problem}`)
  return failed.length + problems.length === 0
}

async function list(given: Given): Promise<void> {
  const { place, name } = openAddress(given.words[0] ?? '', process.env)
  const files = (await place.list()).filter(file => name === undefined || file.name === name)
  const rows = files.map(file => ({
    ...file,
    createdAt: timeOfFile(file.name)?.toISOString() ?? '',
    isEncrypted: file.name.endsWith('.age'),
  }))
  printList(given, rows, {
    name: each => each.name,
    created: each => each.createdAt,
    size: each => toMb(each.bytes),
    encrypted: each => (each.isEncrypted ? 'encrypted' : ''),
  })
}

async function verify(given: Given): Promise<void> {
  const from = openFile(given)
  const { unpackTrees, checkImages } = await openCopies('/')
  const progress = createProgress({ isQuiet: given.has('quiet') })
  const parent = given.find('temporary') ?? process.env.TMPDIR ?? '/tmp'
  const found = await verifyBackup({
    ...{ from, parent, unpackTrees, checkImages },
    secrets: readSecrets(given),
    onStep: progress.say,
  }).finally(() => progress.end())
  tell(given, found, 'is whole')
}

async function restore(given: Given): Promise<void> {
  const from = openFile(given)
  const { dataDirectory } = await readConfig(given.settings, process.env)
  const { unpackTrees } = await openCopies(dataDirectory)
  const progress = createProgress({ isQuiet: given.has('quiet') })
  const found = await restoreBackup({
    ...{ from, dataDirectory, unpackTrees },
    secrets: readSecrets(given),
    onStep: progress.say,
  }).finally(() => progress.end())
  const { databaseAt } = found.manifest
  await keepBackup(dataDirectory, 'backup restore', { action: 'backup.restored', target: {}, detail: { databaseAt } })
  tell(given, found, `is restored in ${dataDirectory}`)
}

/** A backup that exists must not count as failed, and be made again, only because its audit row has no room. */
async function keepBackup(dataDirectory: string, command: string, change: Parameters<typeof keepCommand>[2]) {
  try {
    using db = await openData(dataDirectory)
    keepCommand(db, command, change)
  } catch (error) {
    console.error(`threadbox: the audit log has no row of this ${change.action}: ${messageOf(error)}`)
  }
}

function tell(given: Given, { manifest, contents }: Extracted, what: string): void {
  const { sandboxes, snapshots } = contents
  if (given.has('json')) console.log(JSON.stringify({ ...manifest, sandboxes, snapshots }, null, 2))
  if (given.has('json') || given.has('quiet')) return
  for (const { id, note } of [...sandboxes, ...snapshots]) if (note) console.log(`${id}\t${note}`)
  const saved = sandboxes.filter(({ at }) => at !== undefined).length
  const { threadbox, databaseAt } = manifest
  console.log(`the backup of ${databaseAt} ${what}: ${countOf(saved, 'sandbox')}, written by threadbox ${threadbox}`)
}

function openFile(given: Given): Address {
  const address = openAddress(given.words[0] ?? '', process.env)
  if (address.name === undefined) throw new UsageError(`${given.words[0]}: name one backup, as backup list shows it`)
  return address
}

function readSandboxes(given: Given): 'all' | 'none' | string[] {
  const ids = given.all('sandboxes').flatMap(value => value.split(','))
  if (ids.length === 0 || (ids.length === 1 && ids[0] === 'all')) return 'all'
  return ids.length === 1 && ids[0] === 'none' ? 'none' : ids
}

function readNumber(given: Given, flag: string): number | undefined {
  const text = given.find(flag)
  if (text === undefined) return undefined
  if (!/^[1-9]\d{0,5}$/.test(text)) throw new UsageError(`--${flag}: must be a whole number from 1`)
  return Number(text)
}

/** The passphrase comes from a file or a variable, because every user of the machine can read arguments. */
function readPassphrase(given: Given): Pick<Secrets, 'passphrase'> {
  const file = given.find('passphrase-file')
  const text =
    file === undefined ? process.env.THREADBOX_BACKUP_PASSPHRASE : readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  if (text === undefined) return {}
  if (text.length < MIN_PASSPHRASE)
    throw new UsageError(`the passphrase must have ${MIN_PASSPHRASE} or more characters`)
  return { passphrase: text }
}

const MIN_PASSPHRASE = 12

const readSecrets = (given: Given): Secrets => ({
  ...readPassphrase(given),
  identities: given
    .all('identity')
    .flatMap(file => readFileSync(file, 'utf8').split('\n'))
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('#')),
})

const toMb = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`

const countOf = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 'es'}`
