// Run against a server, with the client that hey-api makes beside it: bun hey-api.ts URL KEY
import { client } from './client/client.gen.ts'
import {
  chat,
  createSandbox,
  createThread,
  deleteSandbox,
  getSandbox,
  listFiles,
  runCommand,
  writeFiles,
} from './client/sdk.gen.ts'

declare const process: { argv: string[] }
const [baseUrl = '', key = ''] = process.argv.slice(2)
client.setConfig({ baseUrl: baseUrl as never, auth: () => key })

const { data: sandbox } = await createSandbox({ body: { agent: 'echo', envs: { A: 'set' } } })
if (!sandbox) throw new Error('no sandbox')
const path = { sandboxId: sandbox.id }
const ran = await runCommand({ path, body: { command: 'echo $A; exit 3' } })
const result = ran.data as { stdout: string; exitCode: number } | undefined
const written = await writeFiles({ path, body: { files: [{ path: '/tmp/a', content: 'text' }] } })
const list = await listFiles({ path, query: { path: '/tmp' } })
const { data: thread } = await createThread({ path, body: { name: 'first' } })
const messages = [{ role: 'user' as const, parts: [{ type: 'text', text: 'Hello' }] }]
const reply = await chat({
  path: { slug: 'echo' },
  body: { sandboxId: sandbox.id, ...(thread && { threadId: thread.id }), messages },
})
const types: string[] = []
if ('stream' in reply)
  for await (const event of reply.stream) types.push((event as { type?: string }).type ?? String(event))
const detail = await getSandbox({ path })
const { error } = await getSandbox({ path: { sandboxId: 'sbx_none' } })
const deleted = await deleteSandbox({ path })

console.log(
  JSON.stringify({
    stdout: result?.stdout,
    exitCode: result?.exitCode,
    written: written.data?.files.map(({ size }) => size),
    files: list.data?.map(({ name }) => name),
    done: types.at(-1) === '[DONE]',
    threads: detail.data?.threads.map(({ name }) => name),
    error: error?.error.code,
    deleted: deleted.response?.status,
  }),
)
