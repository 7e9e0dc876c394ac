import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { LeftOut, type Part, type Round } from '../part.ts'
import { createApart } from './create.ts'

const NAME = 'threadbox-bench'

/** Measures creates from a named root file system, which has only bash and its libraries. */
export const base: Part = {
  rounds: 2,
  async measure(round) {
    const { sizes, place, record } = round
    await addBase(round)
    await using server = await place.serve()
    const { firsts, bashes } = await createApart(server, sizes.spacedCreates, { agent: NAME })
    record('create-base', firsts, bashes)
  },
}

/** Adds the base once for each data directory: the rounds share it. */
async function addBase({ place }: Round): Promise<void> {
  const at = ['--data-dir', place.directory]
  if ((await place.run('base', 'list', '--quiet', ...at)).split('\n').includes(NAME)) return
  const archive = join(place.directory, `${NAME}.tar`)
  const agent = join(place.directory, `${NAME}.json`)
  // Links are followed, so the archive contains the files they lead to.
  const pack = `set -e; bash=$(command -v bash); cp "$bash" bash
    { echo bash; ldd "$bash" | grep -o '/[^ ]*'; } | tar -chPf ${NAME}.tar --transform 's,^bash$,bin/bash,' -T -; rm bash`
  const packing = Bun.spawn(['bash', '-c', pack], { cwd: place.directory, stdio: ['ignore', 'ignore', 'pipe'] })
  if ((await packing.exited) !== 0) throw new LeftOut(`tar or ldd: ${(await packing.stderr.text()).trim()}`)
  await place.run('base', 'add', NAME, archive, '--quiet', ...at)
  await writeFile(agent, JSON.stringify({ slug: NAME, sandbox: { base: NAME } }))
  await place.run('agents', 'apply', agent, '--quiet', ...at)
}
