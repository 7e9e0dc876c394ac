/** The backend e2b beside E2B's own SDK: at E2B when E2B_API_KEY is set, else at a threadbox. */
import { Sandbox } from 'e2b'
import { openThreadboxAsE2b } from '../../test/support/threadbox-as-e2b.ts'
import { call, inDirectory, serve } from './server.ts'
import { line, report, timed } from './table.ts'

const ROUNDS = 3
const outer = process.env.E2B_API_KEY ? undefined : await openThreadboxAsE2b()
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('E2B_')))
Object.assign(env, outer?.variables)
Object.assign(process.env, env)

const sdkRun = line('e2b SDK: commands.run true')
const execs = line('exec over HTTP: true, sandbox warm', { baseline: sdkRun })
const sdkCreate = line('e2b SDK: create, commands.run true')
const firsts = line('create a sandbox, then its first exec', { baseline: sdkCreate })
const deletes = line('delete a sandbox')

await inDirectory(async directory => {
  const { url, stop } = await serve(directory, ['--backend', 'e2b'], env as Record<string, string>)
  const create = async () => JSON.parse(await call(url, 'POST', '/v1/sandboxes', { agent: 'echo' }))
  const exec = (id: string) => call(url, 'POST', `/v1/sandboxes/${id}/exec`, { command: 'true' })
  const { id } = await create()
  await exec(id)
  const plain = await Sandbox.create('base')
  for (let round = 0; round < ROUNDS; round++) {
    await timed(execs, 30, () => exec(id))
    await timed(sdkRun, 30, () => plain.commands.run('true', { user: 'root' }))
    const made: string[] = []
    await timed(firsts, 5, async () => {
      const sandbox = await create()
      made.push(sandbox.id)
      await exec(sandbox.id)
    })
    const plains: Sandbox[] = []
    await timed(sdkCreate, 5, async () => {
      const sandbox = await Sandbox.create('base')
      plains.push(sandbox)
      await sandbox.commands.run('true', { user: 'root' })
    })
    for (const sandbox of plains) await sandbox.kill()
    await timed(deletes, 5, () => call(url, 'DELETE', `/v1/sandboxes/${made.pop()}`))
  }
  await plain.kill()
  await call(url, 'DELETE', `/v1/sandboxes/${id}`)
  await stop()
})
await outer?.close()
report([sdkRun, execs, sdkCreate, firsts, deletes])
process.exit()
