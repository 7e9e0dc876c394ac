import { expect } from 'bun:test'
import { runCommand } from '../../src/environment/run-command.ts'
import type { Environment } from '../../src/plugin-api/index.ts'

/** The guest may read its own directory in /proc, so nobody may have it read there. */
export async function expectOwnFilesRefused(environment: Environment): Promise<void> {
  const { files } = environment
  const threads = await runCommand(environment, { command: 'ls /proc/1/task', timeoutMs: 20_000 })
  const ids = threads.stdout.split('\n').filter(Boolean)
  expect(ids.length).toBeGreaterThan(1)
  await runCommand(environment, {
    command:
      'mkdir -p /srv/own; cd /srv/own; ln -sfn /proc/self self; ln -sf /proc/1/environ file; ln -sfn /proc/1/task task',
    timeoutMs: 20_000,
  })
  const directories = [
    ...[
      '/proc/self',
      '/proc/thread-self',
      '/proc/1',
      '/proc/self/../1',
      '/proc/self/root/proc/1',
      '/proc/1/cwd/proc/self',
    ],
    ...['/srv/own/self', '/srv/own/task/1', '/proc/self/task/1', ...ids.map(id => `/proc/${id}`)],
  ]
  const refused = (work: Promise<unknown>) => expect(work).rejects.toMatchObject({ code: 'invalid_request' })
  for (const directory of directories) {
    for (const name of ['environ', 'maps', 'status', 'cmdline']) await refused(files.read(`${directory}/${name}`))
    await refused(files.write(`${directory}/comm`, Buffer.from('x')))
    await refused(files.info(`${directory}/fd`))
    await refused(files.list(`${directory}/fd`))
  }
  await refused(files.read('/srv/own/file'))
  await refused(files.rename('/proc/1/comm', '/tmp/comm'))
  await refused(files.remove('/proc/self/comm'))
  // What else is in /proc is there for all.
  expect(await new Response((await files.read('/proc/meminfo')).body).text()).toContain('MemTotal')
  const listed = await files.list('/proc', 2)
  expect(listed.filter(({ path }) => /^\/proc\/(1|self|thread-self)\//.test(path))).toEqual([])
}
