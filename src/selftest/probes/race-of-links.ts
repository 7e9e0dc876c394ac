import { ApiError } from '../../errors.ts'
import { variablesOf } from '../run-inside.ts'
import type { Subject } from '../subject.ts'
import { readSome } from './file-operations.ts'

const ROUNDS = 30

/** Uses the file operations in a directory that is a link to the host's directory every other moment. */
export async function raceOfLinks(subject: Subject): Promise<readonly string[]> {
  const { environment, secret, signal } = subject
  const place = `/tmp/selftest-${crypto.randomUUID()}`
  await environment.files.makeDirectory(place)
  const command = [...(environment.executable ?? []), 'probe', 'files/swap', place]
  const swapping = await environment.spawn({ command, env: variablesOf(subject), signal })
  const { value } = await swapping.stdout.getReader().read()
  if (Buffer.from(value ?? []).toString() !== 'ready\n') throw new Error('the race could not be started')
  const found = new Set<string>()
  const path = (name: string) => `${place}/swapped/${name}`
  const { files } = environment
  try {
    for (let round = 0; round < ROUNDS; round++) {
      signal.throwIfAborted()
      if ((await readSome(environment, path('secret'))).includes(secret)) found.add('a file of this machine was read')
      await refusedOrDone(files.write(path('target'), Buffer.from('overwritten')))
      await refusedOrDone(files.write(path('gone'), Buffer.from('made')))
      await refusedOrDone(files.rename(path('gone'), path('made')))
      await refusedOrDone(files.remove(path('secret')))
      await refusedOrDone(files.list(place, 4))
    }
    // The directory is removed while it is swapped.
    await refusedOrDone(files.remove(place))
  } finally {
    swapping.kill()
    await swapping.exited.catch(() => {})
  }
  return [...found]
}

async function refusedOrDone(work: Promise<unknown>): Promise<void> {
  await work.catch(error => {
    if (!(error instanceof ApiError)) throw error
  })
}
