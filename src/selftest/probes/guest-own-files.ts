import { runCommand } from '../../environment/run-command.ts'
import { ApiError } from '../../errors.ts'
import { runInside } from '../run-inside.ts'
import type { Subject } from '../subject.ts'

const DIRECTORY = '/srv/own'
/** Nobody may get these files of a process from the guest, which may read its own. */
const names = ['environ', 'maps', 'status', 'cmdline']
const own = [
  ...['/proc/self', '/proc/thread-self', '/proc/1', '/proc/self/../1', '/proc/self/root/proc/1'],
  ...['/proc/1/cwd/proc/self', `${DIRECTORY}/self`, `${DIRECTORY}/task/1`, '/proc/self/task/1'],
]

/** Reports which of its own files in /proc the guest reads or writes for a caller, and by which path. */
export async function findReadableOwnFiles(subject: Subject): Promise<readonly string[]> {
  const { environment, signal } = subject
  const { files } = environment
  const threads = await runInside(subject, 'guest/threads')
  if (threads.length < 2) throw new Error('the threads of process 1 could not be listed')
  const links = `ln -sfn /proc/self self; ln -sf /proc/1/environ file; ln -sfn /proc/1/task task`
  await runCommand(environment, { command: `mkdir -p ${DIRECTORY} && cd ${DIRECTORY} && { ${links}; }`, signal })
  const found: string[] = []
  const refused = async (what: string, work: Promise<unknown>) => {
    const code = await work.then(
      () => 'done',
      error => (error instanceof ApiError ? error.code : Promise.reject(error)),
    )
    if (code !== 'invalid_request') found.push(`${what}: ${code}`)
  }
  const tryDirectory = async (directory: string) => {
    for (const name of names) await refused(`reading ${directory}/${name}`, files.read(`${directory}/${name}`))
    await refused(`writing ${directory}/comm`, files.write(`${directory}/comm`, Buffer.from('x')))
    await refused(`a look at ${directory}/fd`, files.info(`${directory}/fd`))
    await refused(`a list of ${directory}/fd`, files.list(`${directory}/fd`))
  }
  for (const directory of own) await tryDirectory(directory)
  for (const id of threads) {
    const before = found.length
    await tryDirectory(`/proc/${id}`)
    // The guest's threads come and go. The files of one that has ended are gone too, so that there is nothing to refuse.
    const isAllGone = found.length > before && found.slice(before).every(line => line.endsWith(': file_not_found'))
    if (isAllGone && !(await runInside(subject, 'guest/threads')).includes(id)) found.length = before
  }
  await refused('reading by a link', files.read(`${DIRECTORY}/file`))
  await refused('renaming /proc/1/comm', files.rename('/proc/1/comm', '/tmp/comm'))
  await refused('removing /proc/self/comm', files.remove('/proc/self/comm'))
  // Every process may read the other files in /proc.
  const memory = await new Response((await files.read('/proc/meminfo')).body).text()
  if (!memory.includes('MemTotal')) throw new Error('/proc/meminfo could not be read')
  for (const { path } of await files.list('/proc', 2))
    if (/^\/proc\/(?:1|self|thread-self)\//.test(path)) found.push(`${path} is listed`)
  return found
}
