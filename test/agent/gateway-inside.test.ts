import { beforeAll, describe, expect, test } from 'bun:test'
import { bash, modelSetups, type Place, useAgentServer } from '../support/agent-server.ts'
import { textIn } from '../support/sse.ts'

const relay = 'http://127.0.0.1:3128'
const token = `tbr_${'A'.repeat(43)}`
/** How each wire's clients show what they have. */
const asKey = `-H 'x-api-key: ${token}'`
const asBearer = `-H 'authorization: Bearer ${token}'`

const attempts = [
  { name: 'no token', url: '/gateway/anthropic/v1/messages', options: '-d {}', status: '401' },
  {
    name: 'a made-up token as x-api-key',
    url: '/gateway/anthropic/v1/messages',
    options: `${asKey} -d {}`,
    status: '401',
  },
  {
    name: 'a made-up token as Bearer',
    url: '/gateway/openai/v1/responses',
    options: `${asBearer} -d {}`,
    status: '401',
  },
  {
    name: 'a made-up token for chat',
    url: '/gateway/local/v1/chat/completions',
    options: `${asBearer} -d {}`,
    status: '401',
  },
  {
    name: 'a made-up token as x-goog-api-key',
    url: '/gateway/gemini/v1beta/models/m:generateContent',
    options: `-H 'x-goog-api-key: ${token}' -d {}`,
    status: '401',
  },
  { name: 'another provider', url: '/gateway/nobody/v1/messages', options: `${asKey} -d {}`, status: '401' },
  { name: 'a path that is no call', url: '/gateway/anthropic/v1/files', options: asKey, status: '401' },
  { name: 'a path up from the gateway', url: '/gateway/../v1/sandboxes', options: asKey, status: '404' },
  { name: 'a path up from a provider', url: '/gateway/anthropic/../../v1/sandboxes', options: asKey, status: '404' },
  { name: 'a path up from a provider, encoded', url: '/gateway/%2e%2e/v1/sandboxes', options: asKey, status: '404' },
  {
    name: 'a path up from the provider’s own',
    url: '/gateway/anthropic/v1/../../../admin',
    options: asKey,
    status: '404',
  },
  { name: 'the server’s API', url: '/v1/sandboxes', options: '', status: '404' },
  { name: 'its health', url: '/health', options: '', status: '404' },
  { name: 'its docs', url: '/docs', options: '', status: '404' },
]

describe.each(['public', 'none'])('from inside a sandbox with --network %s', network => {
  const { server, model, said } = useAgentServer(modelSetups, { flags: ['--network', network] })
  let place: Place
  let calls = 0

  /** What the agent's own Bash prints. */
  async function fromInside(command: string): Promise<string> {
    model.play({ calls: [bash(command)] }, ({ results }) => ({ text: results.join('') }))
    const { chunks, ...ids } = await said('Run it.', place)
    place = { sandboxId: ids.sandboxId, threadId: ids.threadId }
    calls += 2
    return textIn(chunks)
  }
  const curl = (url: string, options: string) =>
    fromInside(
      `curl -s --path-as-is --noproxy '*' -m 10 -o /tmp/body -w '%{http_code} ' ${options} '${relay}${url}'; cat /tmp/body`,
    )

  beforeAll(async () => {
    expect(await fromInside('echo ready')).toBe('ready\n')
  })

  test.each(attempts)('$name gets $status', async ({ url, options, status }) => {
    const answer = await curl(url, options)
    expect(answer.slice(0, 4)).toBe(`${status} `)
    expect(answer).not.toMatch(/sandboxId|"ok"/)
  })

  const ways = [
    {
      name: 'the server by the proxy',
      command: (url: string) => `curl -s -m 10 --noproxy '' -x ${relay} -w ' %{http_code}' ${url}/health`,
    },
    {
      name: 'the server by a tunnel',
      command: (url: string) => `curl -s -m 10 --noproxy '' -p -x ${relay} -w ' %{http_connect}' ${url}/health`,
    },
    {
      name: 'the model by the proxy',
      command: () =>
        `curl -s -m 10 --noproxy '' -x ${relay} -w ' %{http_code}' ${model.access('anthropic').baseUrl}/messages`,
    },
    {
      name: 'the gateway’s own name',
      command: () =>
        `curl -s -m 10 -x ${relay} -w ' %{http_code}' http://gateway.invalid/gateway/anthropic/v1/messages`,
    },
    {
      name: 'the relay by itself',
      command: () => `curl -s -m 10 --noproxy '' -x ${relay} -w ' %{http_code}' ${relay}/gateway/anthropic/v1/models`,
    },
  ]
  test.each(ways)('$name is refused', async ({ command }) => {
    expect(await fromInside(`${command(server.url)}; true`)).toMatch(/ (40[13]|502)$/)
  })

  test('no socket but the relay’s answers', async () => {
    const { port } = new URL(server.url)
    const dial = (host: string, at: string) =>
      `timeout 3 bash -c 'exec 3<>/dev/tcp/${host}/${at}; printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3; head -c 1 <&3 | grep -q . && echo ${host} answers' 2>/dev/null`
    const printed = await fromInside(
      `${dial('127.0.0.1', port)}; ${dial('192.168.1.1', port)}; ${dial('127.0.0.1', '3128')}; true`,
    )
    expect(printed).toBe('127.0.0.1 answers\n')
  })

  test('nothing of it reached the model', () => {
    expect(model.requests).toHaveLength(calls)
  })
})
