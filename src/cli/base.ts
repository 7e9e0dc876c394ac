import { readConfig } from '../config.ts'
import { messageOf } from '../errors.ts'
import { splitWords, UsageError } from './flags.ts'

/** Where the backend nsjail keeps what sandboxes can start from. */
export interface Bases {
  add(name: string, tarball: AsyncIterable<Uint8Array>): Promise<void>
  list(): Promise<{ name: string; sandboxes: number }[]>
  remove(name: string): Promise<void>
}

const usage = 'threadbox base add NAME FILE | list | remove NAME'

/** Works beside a running server, which sees the change at once. FILE `-` is the standard input. */
export async function base(args: readonly string[], open: (dataDirectory: string) => Promise<Bases>): Promise<void> {
  const { words, flags } = splitWords(args)
  const [action, name, file] = words
  const bases = await open((await readConfig(flags, process.env)).dataDirectory)
  if (action === 'add' && name && file) {
    if (file !== '-' && !(await Bun.file(file).exists())) throw new UsageError(`There is no file ${file}.`)
    const tarball = (file === '-' ? Bun.stdin : Bun.file(file)).stream()
    await bases.add(name, tarball).catch(error => {
      throw new Error(`${file}: ${messageOf(error)}`)
    })
    console.log(`${name} is added. Agents start from it by "sandbox": {"base": "${name}"}.`)
  } else if (action === 'list') {
    for (const { name, sandboxes } of await bases.list()) console.log(`${name}\tused by ${sandboxes}`)
  } else if (action === 'remove' && name) {
    await bases.remove(name)
    console.log(`${name} is removed.`)
  } else {
    throw new UsageError(`usage: ${usage}`)
  }
}
