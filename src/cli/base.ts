import { messageOf } from '../errors.ts'
import { openData } from '../start/data.ts'
import { openBases } from '../start/plugins.ts'
import { type Given, UsageError } from './command-line.ts'
import { readPlace } from './data-place.ts'
import { keepCommand } from './keep-command.ts'
import { printList } from './list.ts'
import { createProgress } from './progress.ts'

/** Works beside a running server, which sees the change at once. FILE `-` is the standard input. */
export async function base(given: Given): Promise<void> {
  const { action } = given
  const [name = '', file = ''] = given.words
  const { config, tellIfUnused } = await readPlace(given)
  const { dataDirectory } = config
  const bases = await openBases(dataDirectory)
  if (action === 'add') {
    if (file !== '-' && !(await Bun.file(file).exists())) throw new UsageError(`There is no file ${file}.`)
    const tarball = (file === '-' ? Bun.stdin : Bun.file(file)).stream()
    const progress = createProgress({ isQuiet: given.has('quiet') })
    progress.say(`adding ${name}`)
    await bases
      .add(name, progress.count(tarball))
      .catch(error => {
        throw new Error(`${file}: ${messageOf(error)}`)
      })
      .finally(() => progress.end())
    await keep(dataDirectory, 'base add', { action: 'base.added', target: { base: name } })
    if (!given.has('quiet'))
      console.log(`${name} is added in ${dataDirectory}. Agents start from it by "sandbox": {"base": "${name}"}.`)
  } else if (action === 'list') {
    printList(given, await bases.list(), {
      name: each => each.name,
      sandboxes: each => `used by ${each.sandboxes}`,
    })
  } else {
    await bases.remove(name)
    await keep(dataDirectory, 'base remove', { action: 'base.removed', target: { base: name } })
    if (!given.has('quiet')) console.log(`${name} is removed.`)
  }
  if (action !== 'list') tellIfUnused()
}

async function keep(dataDirectory: string, command: string, change: { action: string; target: { base: string } }) {
  const db = await openData(dataDirectory)
  keepCommand(db, command, change)
  db.close()
}
