// Run against a server, with the types that openapi-typescript makes beside it: bun openapi-typescript.ts URL KEY
import createClient from 'openapi-fetch'
import type { components, paths } from './types.ts'

declare const process: { argv: string[] }
const [baseUrl = '', key = ''] = process.argv.slice(2)
const api = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${key}` } })

const { data: sandbox } = await api.POST('/v1/sandboxes', { body: { agent: 'echo', envs: { A: 'set' } } })
if (!sandbox) throw new Error('no sandbox')
const params = { path: { sandboxId: sandbox.id } }
const ran = await api.POST('/v1/sandboxes/{sandboxId}/exec', { params, body: { command: 'echo $A; exit 3' } })
const { data: written } = await api.POST('/v1/sandboxes/{sandboxId}/files', {
  params,
  body: { files: [{ path: '/tmp/a', content: 'text' }] },
})
const { data: list } = await api.GET('/v1/sandboxes/{sandboxId}/files/list', {
  params: { ...params, query: { path: '/tmp' } },
})
const { data: thread } = await api.POST('/v1/sandboxes/{sandboxId}/threads', { params, body: { name: 'first' } })
const reply = await api.POST('/v1/chat/{slug}', {
  params: { path: { slug: 'echo' } },
  body: {
    sandboxId: sandbox.id,
    ...(thread && { threadId: thread.id }),
    messages: [{ role: 'user', parts: [{ type: 'text', text: 'Hello' }] }],
  },
  parseAs: 'text',
})
const detail = await api.GET('/v1/sandboxes/{sandboxId}', { params })
const named: components['schemas']['Sandbox'] | undefined = detail.data
const { error } = await api.GET('/v1/sandboxes/{sandboxId}', { params: { path: { sandboxId: 'sbx_none' } } })
const deleted = await api.DELETE('/v1/sandboxes/{sandboxId}', { params })

console.log(
  JSON.stringify({
    stdout: ran.data && typeof ran.data === 'object' ? ran.data.stdout : '',
    exitCode: ran.data && typeof ran.data === 'object' ? ran.data.exitCode : -1,
    written: written?.files.map(({ size }) => size),
    files: list?.map(({ name }) => name),
    done: reply.response.headers.get('x-thread-id') === thread?.id && String(reply.data).endsWith('data: [DONE]\n\n'),
    threads: named?.threads.map(({ name }) => name),
    error: error?.error.code,
    deleted: deleted.response.status,
  }),
)
