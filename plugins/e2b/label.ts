import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** What tells the sandboxes of this data directory from all others of the same E2B project. */
export interface Label {
  /** False as long as no sandbox was made on E2B. */
  exists(): boolean
  get(): Promise<string>
}

export function labelOf(dataDirectory: string): Label {
  const file = join(dataDirectory, 'e2b', 'label')
  let label: Promise<string> | undefined

  const make = async () => {
    if (existsSync(file)) return (await readFile(file, 'utf8')).trim()
    const made = crypto.randomUUID()
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await writeFile(`${file}.new`, `${made}\n`)
    await rename(`${file}.new`, file)
    return made
  }
  return {
    exists: () => existsSync(file),
    get() {
      label ??= make()
      return label
    },
  }
}
