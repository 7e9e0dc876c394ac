import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { Value } from '@sinclair/typebox/value'
import { bounds } from '../bounds.ts'
import { DEFAULT_TEAM, ensureTeamWithEcho } from '../core/access/teams.ts'
import { SECRET_NAME, SecretName } from '../core/secrets/bindings.ts'
import { listWithBound, storeSecret } from '../core/secrets/secrets.ts'
import { inTransaction } from '../db/open.ts'
import { deleteSecret } from '../db/secrets.ts'
import { readBytes } from '../read/bytes.ts'
import { openData } from '../start/data.ts'
import { type Given, UsageError } from './command-line.ts'
import { readPlace } from './data-place.ts'
import { keepCommand } from './keep-command.ts'
import { printList } from './list.ts'

/** The longest input that can be a value, with its line end. */
const MAX_INPUT_BYTES = 3 * bounds.secret + 2

/** Works beside a running server, which sees the change at once. */
export async function secrets(given: Given): Promise<void> {
  const { action } = given
  const [name = ''] = given.words
  if (action !== 'list' && !Value.Check(SecretName, name)) throw new UsageError(`NAME: ${SECRET_NAME}`)
  const { config, tellIfUnused } = await readPlace(given)
  // The value is read before the database is opened, because that may take long and may be cancelled.
  const value = action === 'set' ? await readValue(name) : ''
  const db = await openData(config.dataDirectory)
  try {
    const { id: teamId } = ensureTeamWithEcho(db, given.find('team') ?? DEFAULT_TEAM)
    if (action === 'list') {
      const rows = listWithBound(db, teamId).map(({ id: _, teamId: __, ...secret }) => secret)
      printList(given, rows, {
        name: each => each.name,
        set: each => each.updatedAt,
        agents: each => each.agents.join(', ') || '-',
        sandboxes: each => String(each.sandboxes),
      })
      return
    }
    if (action === 'set') {
      inTransaction(db, () => {
        storeSecret(db, teamId, name, value)
        keepCommand(db, 'secrets set', { teamId, action: 'secret.set', target: { name } })
      })
    } else {
      inTransaction(db, () => {
        if (!deleteSecret(db, teamId, name)) throw new UsageError(`There is no secret ${name}.`)
        keepCommand(db, 'secrets remove', { teamId, action: 'secret.removed', target: { name } })
      })
    }
    if (!given.has('quiet')) console.log(`${name} is ${action === 'set' ? 'set' : 'removed'}.`)
  } finally {
    db.close()
  }
  tellIfUnused()
}

async function readValue(name: string): Promise<string> {
  const text = process.stdin.isTTY ? await askFor(`The value of ${name}, which is not shown: `) : await readInput()
  return text.replace(/\r?\n$/, '')
}

async function readInput(): Promise<string> {
  const bytes = await readBytes(Bun.stdin.stream(), MAX_INPUT_BYTES)
  if (!bytes) throw new UsageError(`The value has more than ${bounds.secret} characters.`)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new UsageError('The value is not text in UTF-8.')
  }
}

/** Reads a line from the terminal without showing it. */
async function askFor(question: string): Promise<string> {
  process.stderr.write(question)
  const nowhere = new Writable({ write: (_, __, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  terminal.once('SIGINT', () => process.exit(130))
  try {
    return await terminal.question('')
  } finally {
    terminal.close()
    process.stderr.write('\n')
  }
}
