import { readdirSync } from 'node:fs'
import type { Environment } from '../../plugin-api/index.ts'
import type { Probe } from '../probe.ts'
import { findDamage, NOT_INSIDE, runInside } from '../run-inside.ts'
import type { Subject } from '../subject.ts'
import { endOf, inNewDirectory, readSome } from './file-operations.ts'
import { raceOfLinks } from './race-of-links.ts'

const READ = "Who works with a sandbox's files could be led to read this machine's."
const WRITE = "Who works with a sandbox's files could be led to write this machine's."
const STOP = 'A sandbox could hold up who works with its files, and the server.'

/** Makes a probe of the file operations, which must leave the host's files unchanged. */
const ofFiles = (
  name: string,
  tried: string,
  meaning: string,
  run: (subject: Subject) => Promise<readonly string[]>,
): Probe => ({
  id: `files/${name}`,
  tried,
  meaning,
  async run(subject) {
    const found = await run(subject)
    const made = readdirSync(subject.hostDirectory).filter(each => !['secret', 'target'].includes(each))
    return [...found, ...made.map(each => `${each} was made on this machine`), ...(await findDamage(subject))]
  },
})

/** These paths lead to a host's directory from a place with the links `out`, `up` and `file`. */
const waysOut = (place: string, host: string) => [
  ...[
    `${place}/out`,
    `${place}/up${host}`,
    `${place}/out/../${host.slice(host.lastIndexOf('/') + 1)}`,
    `${place}/chain`,
  ],
  ...[
    `/../../..${host}`,
    `${place}/../../../../..${host}`,
    `/proc/1/root${host}`,
    `/proc/self/root${host}`,
    `/proc/self/cwd/..${host}`,
    host,
  ],
]
const makeLinks =
  'ln -s "$HOST" out; ln -s ../../../../../../.. up; ln -s "$HOST/target" file; ln -s out one; ln -s one chain; echo mine >mine'

const isInside = ({ environment }: Subject) => (environment.executable ? undefined : NOT_INSIDE)

const write = (environment: Environment, path: string) =>
  endOf(environment.files.write(path, Buffer.from('overwritten')))

export const files: readonly Probe[] = [
  ofFiles('read', 'reads files of this machine through links, .. and /proc', READ, async subject => {
    const { environment, hostDirectory, secret } = subject
    const place = await inNewDirectory(subject, makeLinks)
    const found: string[] = []
    for (const way of [...waysOut(place, hostDirectory).map(each => `${each}/secret`), `${place}/file`]) {
      if ((await readSome(environment, way)).includes(secret)) found.push(`${way} shows a file of this machine`)
    }
    return found
  }),
  ofFiles('list', 'lists directories of this machine through links, .. and /proc', READ, async subject => {
    const { environment, hostDirectory } = subject
    const place = await inNewDirectory(subject, makeLinks)
    const found: string[] = []
    for (const way of [...waysOut(place, hostDirectory), place]) {
      const listed = await endOf(environment.files.list(way, 3, { details: true }))
      const names = 'result' in listed ? listed.result.map(({ name }) => name) : []
      if (names.includes('secret')) found.push(`${way} lists files of this machine`)
      const known = await endOf(environment.files.info(`${way}/secret`, { details: true }))
      if ('result' in known && known.result) found.push(`${way}/secret is described`)
    }
    return found
  }),
  ofFiles('write', 'writes files of this machine through links, .. and /proc', WRITE, async subject => {
    const { environment, hostDirectory } = subject
    const place = await inNewDirectory(subject, makeLinks)
    for (const way of waysOut(place, hostDirectory)) {
      await write(environment, `${way}/target`)
      await write(environment, `${way}/made`)
    }
    await write(environment, `${place}/file`)
    return []
  }),
  ofFiles('make', 'makes directories on this machine through links, .. and /proc', WRITE, async subject => {
    const place = await inNewDirectory(subject, makeLinks)
    for (const way of waysOut(place, subject.hostDirectory)) {
      await endOf(subject.environment.files.makeDirectory(`${way}/directory`))
    }
    return []
  }),
  ofFiles('rename', 'renames over files of this machine, and takes them away by a rename', WRITE, async subject => {
    const { environment, hostDirectory, secret } = subject
    const place = await inNewDirectory(subject, makeLinks)
    const found: string[] = []
    for (const way of waysOut(place, hostDirectory)) {
      await write(environment, `${place}/mine`)
      await endOf(environment.files.rename(`${place}/mine`, `${way}/target`))
      await endOf(environment.files.rename(`${way}/secret`, `${place}/taken`))
      if ((await readSome(environment, `${place}/taken`)).includes(secret)) found.push(`${way}/secret was taken`)
    }
    return found
  }),
  ofFiles('remove', 'removes files of this machine through links, .. and /proc', WRITE, async subject => {
    const { environment, hostDirectory } = subject
    const place = await inNewDirectory(subject, `${makeLinks}; mkdir deep; ln -s "$HOST" deep/out`)
    for (const way of waysOut(place, hostDirectory)) await endOf(environment.files.remove(`${way}/secret`))
    // Removing a directory removes the links in it, and must not remove their targets.
    await endOf(environment.files.remove(`${place}/deep`))
    await endOf(environment.files.remove(place))
    return []
  }),
  {
    ...ofFiles(
      'race',
      'swaps a directory for a link to this machine while its files are worked with',
      WRITE,
      raceOfLinks,
    ),
    withinMs: 60_000,
    excuse: isInside,
  },
  ofFiles('fifo', 'has FIFOs and sockets read and written', STOP, async subject => {
    const { environment } = subject
    const place = await inNewDirectory(subject, 'mkfifo fifo; ln -s fifo link; mkdir in; mkfifo in/fifo')
    const found: string[] = []
    for (const name of ['fifo', 'link', 'in/fifo']) {
      const path = `${place}/${name}`
      if (!('code' in (await endOf(environment.files.read(path))))) found.push(`${path} was read, or waited for`)
      if (!('code' in (await write(environment, path)))) found.push(`${path} was written, or waited for`)
    }
    if (!('result' in (await endOf(environment.files.list(place, 3))))) found.push('FIFOs could not be listed')
    if (!('result' in (await endOf(environment.files.remove(place))))) found.push('FIFOs could not be removed')
    return found
  }),
  ofFiles('devices', 'has devices and files without end read', STOP, async ({ environment }) => {
    const found: string[] = []
    const paths = ['zero', 'full', 'random', 'urandom', 'tty', 'kmsg', 'mem', 'ptmx'].map(name => `/dev/${name}`)
    for (const path of [...paths, '/proc/kcore', '/proc/kmsg', '/sys/kernel/debug/tracing/trace_pipe']) {
      const ended = await endOf(environment.files.read(path))
      if (!('code' in ended)) found.push(`${path} was read, or waited for`)
    }
    return found
  }),
  ofFiles('names', 'uses names of 255 bytes, with line breaks, quotes and commands in them', STOP, async subject => {
    const { environment } = subject
    const { files } = environment
    const place = await inNewDirectory(subject, 'touch "$(printf \'broken-\\377\\376\')"')
    const names = [
      'n'.repeat(255),
      'line\nbreak',
      '-rf',
      '$(touch made)',
      '`touch made`',
      "'; touch made; '",
      '"\t\\',
      'ä\u202e\u{1f600}',
      '...',
    ]
    const found: string[] = []
    for (const name of names) {
      const path = `${place}/${name}`
      await files.write(path, Buffer.from('content'))
      if ((await readSome(environment, path)) !== 'content')
        found.push(`${JSON.stringify(name)} is not what was written`)
      const listed = await files.list(place)
      if (!listed.some(each => each.path === path)) found.push(`${JSON.stringify(name)} is not listed`)
      await files.rename(path, `${place}/${name}`.replace(/.$/u, '+'))
      await files.remove(`${place}/${name}`.replace(/.$/u, '+'))
    }
    const long = await write(environment, `${place}/${'n'.repeat(256)}`)
    if ('result' in long) found.push('a name of 256 bytes was taken')
    if (await files.info(`${place}/made`)) found.push('a name was run as a command')
    await files.remove(place)
    return found
  }),
  {
    ...ofFiles('depth', 'has a tree listed and removed that is deeper than a path may be long', STOP, async subject => {
      const { files } = subject.environment
      const place = await inNewDirectory(subject, 'mkdir top')
      await runInside(subject, 'files/deepen', { words: [`${place}/top`] })
      const found: string[] = []
      if ('isLate' in (await endOf(files.list(`${place}/top`, 64)))) found.push('the list does not come to an end')
      // The removal may take long and fail in the end, while other requests go on.
      const removing = files.remove(place).catch(() => {})
      const written = await endOf(files.write(`/tmp/beside-${crypto.randomUUID()}`, Buffer.from('content')))
      if (!('result' in written)) found.push('nothing else could be written while it was removed')
      void removing
      return found
    }),
    excuse: isInside,
  },
]
