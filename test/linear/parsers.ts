import { Readable } from 'node:stream'
import { createPeer } from '../../plugins/agent-programs/acp/peer.ts'
import { toProgramCall } from '../../plugins/agent-programs/acp/permissions.ts'
import { readToolInput, readToolName, readToolOutput } from '../../plugins/agent-programs/acp/tools.ts'
import { createUpdates } from '../../plugins/agent-programs/acp/updates.ts'
import { createReader } from '../../plugins/agent-programs/claude-code/reader.ts'
import { toPrompt } from '../../plugins/agent-programs/prompt.ts'
import { readSession } from '../../plugins/agent-programs/session-id.ts'
import { toEntries } from '../../plugins/ai-sdk/context/history.ts'
import { lastRequest } from '../../plugins/ai-sdk/context/summary.ts'
import { toOutput } from '../../plugins/ai-sdk/mcp/content.ts'
import { cleanCallId } from '../../plugins/ai-sdk/model/call-ids.ts'
import { allowedTools } from '../../plugins/ai-sdk/tools/allowed.ts'
import { glob } from '../../plugins/ai-sdk/tools/glob.ts'
import { type GrepQuery, grepCommand, ripgrepCommand } from '../../plugins/ai-sdk/tools/grep-command.ts'
import { htmlToText } from '../../plugins/ai-sdk/tools/html.ts'
import { list } from '../../plugins/ai-sdk/tools/list.ts'
import { toModelOutput } from '../../plugins/ai-sdk/tools/output.ts'
import { replace, snippet } from '../../plugins/ai-sdk/tools/replace.ts'
import { resolvePath } from '../../plugins/ai-sdk/tools/tool.ts'
import { demultiplex } from '../../plugins/docker/demultiplex.ts'
import { createMarkerParser } from '../../plugins/e2b/marker-parser.ts'
import { toE2bNetwork } from '../../plugins/e2b/network.ts'
import { echo } from '../../plugins/echo/index.ts'
import { remedyFor } from '../../plugins/nsjail/checks/remedies.ts'
import { isBaseName } from '../../plugins/nsjail/files/resolve-base.ts'
import { tailOf } from '../../plugins/nsjail/host/stderr.ts'
import { isLayerPath } from '../../plugins/nsjail/jail/layer-path.ts'
import { printable } from '../../src/cli/printable.ts'
import { isSlug } from '../../src/core/agents/agent-files.ts'
import { createPermissions } from '../../src/core/permissions/decide.ts'
import { parseRule as parsePermissionRule } from '../../src/core/permissions/rule.ts'
import { readTar } from '../../src/disk/read-tar.ts'
import { parseHost, parseRule } from '../../src/egress/rules.ts'
import { answerHeaders, readToken, upstreamHeaders } from '../../src/gateway/headers.ts'
import { createMeter, estimateTokens } from '../../src/gateway/meter.ts'
import { createRedactor } from '../../src/gateway/redact.ts'
import { admit } from '../../src/gateway/request.ts'
import { findRoute, splitPath } from '../../src/gateway/routes.ts'
import { createDecoder, parse } from '../../src/guest/wire/frame.ts'
import { fileInfosOf } from '../../src/guest/wire/results.ts'
import { findPreviewAddress, parsePort } from '../../src/http/preview/address.ts'
import { confineCookies, ownCookies } from '../../src/http/preview/cookies.ts'
import { readMessages } from '../../src/http/preview/frames.ts'
import { headersInto, headersOut } from '../../src/http/preview/headers.ts'
import { isWebSocket } from '../../src/http/preview/socket.ts'
import { isAbsolutePath } from '../../src/http/schema.ts'
import { readUpload } from '../../src/http/upload.ts'
import { parseFraming, readBody } from '../../src/http1/body.ts'
import { createByteSource } from '../../src/http1/byte-source.ts'
import { endToEnd, isKept, parseRequest, parseResponse } from '../../src/http1/head.ts'
import { parseJson } from '../../src/read/json.ts'
import { lines } from '../../src/read/lines.ts'
import { parseLastEventId } from '../../src/stream/frame.ts'

/**
 * Whatever reads what somebody else wrote: guests, programs in sandboxes, servers behind previews, pages, models, MCP
 * servers, callers. A text that is refused is as good as one that is read: it is the time that counts.
 */
export const parsers: Readonly<Record<string, (text: string) => unknown>> = {
  'a request that a program sends to the proxy': text =>
    heads(text, line => {
      const head = parseRequest(Buffer.from(`GET / HTTP/1.1\r\nHost: a\r\n${line}\r\n\r\n`, 'latin1'))
      parseFraming(head.headers, head.version, 400)
      return [endToEnd(head.headers), isKept(head)]
    }),
  'its first line': text => parseRequest(Buffer.from(`GET ${text} HTTP/1.1\r\nHost: a\r\n\r\n`, 'latin1')),
  'the answer of a server': text =>
    heads(text, line =>
      endToEnd(parseResponse(Buffer.from(`HTTP/1.1 200 ${text}\r\n${line}\r\n\r\n`, 'latin1')).headers),
    ),
  'many headers': text => {
    const many = Array.from({ length: 9000 }, (_, index) => `${index.toString(36)}: ${text.slice(0, 2)}`).join('\r\n')
    return new Headers(
      endToEnd(parseResponse(Buffer.from(`HTTP/1.1 200 OK\r\n${many}\r\n\r\n`, 'latin1')).headers).map(pair),
    )
  },
  'the body of an answer': text => drained(readBody(bytewise(text), { kind: 'chunked' })),
  'a head that comes in single bytes': text => bytewise(text).readThrough('\r\n\r\n', 128 * 1024),
  'a host': parseHost,
  'a network rule': parseRule,
  'a network rule of e2b': text =>
    toE2bNetwork({ mode: 'public', layers: [{ allowOut: [text], denyOut: [text] }] } as never),
  'cookies of a preview': text => [
    confineCookies([text, `a=b;${text}`], '/'),
    ownCookies(text),
    ownCookies(`tbc_${text}`),
  ],
  'headers of a preview': text => {
    const headers = ['location', 'set-cookie', 'x-a', text].map(name => [name, text] as const)
    return headersOut({ status: 200, reason: '', version: '1.1', headers }, mapping)
  },
  'headers for a preview': text => headersInto(asked({ cookie: text, origin: text, connection: text }), mapping),
  'the path of a preview': text => findPreviewAddress(new Request(`http://a/v1/sandboxes/${text}/ports/1/${text}`)),
  'the port of a preview': parsePort,
  'an upgrade': text => isWebSocket(asked({ upgrade: text })),
  'frames of a WebSocket': text =>
    drained(readMessages(createByteSource(Readable.from([Buffer.from(text)])), 1024 * 1024)),
  'a path of the gateway': text => [
    splitPath(text),
    splitPath(`/gateway/a${text}`),
    findRoute({ wire: 'anthropic' }, `/v1/models/${text}`),
  ],
  'headers for a model': text => {
    const headers = headersOf({ authorization: `Bearer ${text}`, connection: text, [text]: text })
    return [readToken(headers), upstreamHeaders(headers, { key: 'k' } as never, 'gemini')]
  },
  'headers of a model': text =>
    answerHeaders(new Response('', { headers: headersOf({ [text]: 'a', 'content-type': text }) })),
  'the stream of a model': text => {
    for (const wire of ['anthropic', 'openai-chat', 'openai-responses', 'gemini'] as const) {
      for (const isStream of [true, false]) {
        const meter = createMeter(wire, isStream, 1)
        for (const each of [text, `data: ${text}\n`, `data: {"delta":${JSON.stringify(text)}}\n`])
          meter.push(Buffer.from(each))
        meter.end()
      }
    }
  },
  'what is kept of a key': text => createRedactor(text.slice(0, 60)).push(Buffer.from(text)),
  'a call to a model': text => [estimateTokens(text), admit({ wire: 'openai-chat' } as never, 'm', parseJson(text))],
  JSON: text => [parseJson(text), parseJson(`{"a":${text}`)],
  'a frame of a guest': text => {
    const decode = createDecoder(() => {})
    decode(Buffer.from(text))
    return parse(Buffer.from(text))
  },
  'a list of files of a guest': fileInfosOf,
  'lines of a program': text => drained(lines(new Response(text).body as never)),
  'a form': text =>
    Promise.allSettled(
      [`a\r\nContent-Disposition: form-data; name=${text}\r\n\r\n`, `a\r\n${text}\r\n\r\n`, text].map(part =>
        readUpload(
          new Request('http://a', {
            method: 'POST',
            headers: { 'content-type': 'multipart/form-data; boundary=a' },
            body: `--${part}\r\n--a--\r\n`,
          }),
          { files: [], keep: () => Promise.reject(new Error('no file')) },
        ),
      ),
    ),
  'the type of a form': text =>
    readUpload(asked({ 'content-type': `multipart/form-data;${text}` }), { files: [], keep: nobody }),
  'a Last-Event-ID': parseLastEventId,
  'a path': isAbsolutePath,
  'a slug': isSlug,
  'the name of a base': isBaseName,
  'the path of a layer': isLayerPath,
  'an archive': text => drained(readTar(Readable.from([tarWith(text), Buffer.from(text)]))),
  'what nsjail says': text => [tailOf(text), remedyFor(text.slice(0, 4096), '/nsjail')],
  'what Docker says': text => demultiplex(Readable.from([]) as never, Buffer.from(text)).destroy(),
  'what e2b says': text => {
    const cutter = createMarkerParser(1)
    for (const byte of Buffer.from(text.slice(0, 8192))) cutter.take(Buffer.of(byte))
    return [cutter.take(Buffer.from(text)), cutter.rest()]
  },
  'tools that are not allowed': text => [
    allowedTools([{ name: text } as never], { disallowedTools: [text, `mcp__${text}`] }),
    toProgramCall({ title: text, kind: 'execute', toolCallId: text }, [text.slice(0, 64)]),
  ],
  'a command that rules are compared with': text =>
    [text, `sudo ${text}`, `echo "${text}" | sh -s -- ${text}`].map(command => permissions.decide('Bash', { command })),
  'paths and pages that rules are compared with': text => [
    permissions.decide('Read', { file_path: text }),
    permissions.decide('Grep', { path: text, glob: text }),
    permissions.decide('Glob', { pattern: `/${text}` }),
    permissions.decide('WebFetch', { url: `https://${text}` }),
  ],
  'a rule of permissions': text =>
    [text, `Bash(${text}:*)`, `Bash(${text})`, `Read(${text})`, `WebFetch(domain:${text})`].map(rule =>
      outcome(() => parsePermissionRule(rule.slice(0, 8192))),
    ),
  'a page': htmlToText,
  'a page with what opens and never closes': text =>
    htmlToText(`${'<p><li>'.repeat(9000)}${text}${'</i>'.repeat(16_000)}`),
  'a pattern of grep': text => [
    grepCommand({ ...query, glob: text }, true),
    ripgrepCommand({ ...query, glob: text }, true),
  ],
  'a pattern of files': text => Promise.allSettled([text, `/${text}`].map(pattern => glob.run({ pattern }, files))),
  'names that are left out': text => list.run({ path: '/', ignore: [text] }, files),
  'a path that a model names': text => resolvePath(files, text),
  'an edit': text => {
    const after = replace(
      { text: `${text}x${text}`, isCrlf: false },
      { old_string: 'x', new_string: text, replace_all: true },
    )
    return snippet(`${text}x${text}`, after)
  },
  'the id of a call': cleanCallId,
  'what the user asked last': text =>
    lastRequest([{ key: '', message: { role: 'user', content: [{ type: 'text', text }] } }]),
  'a conversation': text =>
    toEntries(
      [said(text), { id: 'm', role: 'user', parts: [{ type: 'file', url: `data:${text}`, mediaType: text }] } as never],
      'anthropic',
    ),
  'what an MCP server gives': text => [toOutput({ content: [{ type: 'text', text }] }), toModelOutput(parseJson(text))],
  'a turn of the echo engine': async text => {
    for await (const _ of echo.engine?.({} as never).run(
      { history: [], prompt: [said(text)] } as never,
      {
        signal: new AbortController().signal,
        environment: { spawn: () => Promise.reject(new Error('no process')) },
      } as never,
    ) ?? []);
  },
  'a tool call of an agent program': text => {
    const call = { title: text, name: text, kind: text, rawInput: { command: text }, rawOutput: text, toolCallId: text }
    createUpdates(() => {}, { servers: [text.slice(0, 64), 'a-b'] }).take({ sessionUpdate: 'tool_call', ...call })
    for (const name of [text, `mcp.${text}`, `mcp__${text}`, `a_b${text}`]) readToolName({ name }, ['a-b', 'mcp'])
    return [readToolInput(call), readToolOutput(call)]
  },
  'a message of an agent program': text => {
    const program = { ended: new Promise<string>(() => {}), send: () => {}, onMessage: (_: object) => {} }
    createPeer(program as never, { request: () => false, notification: () => {} })
    program.onMessage({ id: text, method: text, params: { text } })
    const reader = createReader({ emit: () => {}, setWriting: () => {} })
    for (const type of ['result', 'system', 'stream_event', 'assistant', 'user', text])
      reader.read({ type, subtype: text, result: text })
  },
  'the session of an agent program': text => readSession('a', { engineSessionId: `a:${text}`, history: [] } as never),
  'a prompt': text =>
    toPrompt(
      { prompt: [{ role: 'user', parts: [{ type: 'file', url: `data:image/${text}` }] }], history: [] } as never,
      'all',
    ),
  'what a terminal shows': printable,
}

const rules = [
  'Bash(git push:*)',
  'Bash(a b c)',
  'Bash(git * x * y)',
  'Bash(a && b)',
  'Read(**/*a*/**/b?/**)',
  'Read(~/.x/**)',
]
const permissions = createPermissions({
  agent: { ask: [...rules, 'WebFetch(domain:example.com)'] },
  chat: { permissionMode: 'default', allow: [...rules, 'WebFetch(domain:*.example.com)'] },
  ...{ asks: true, canAsk: true, place: { cwd: '/home/user', home: '/home/user' } },
})

const query: Omit<GrepQuery, 'glob'> = {
  ...{ root: '/', mode: 'content' as const, pattern: 'x', ignoreCase: false, before: 0, after: 0 },
}

const mapping = {
  address: { sandboxId: 's', port: '1', root: '/h', prefix: '/h', path: '/' },
  port: 1,
  origin: 'http://localhost',
}

/** A text as a header's value, as its name, and as what a connection names. */
const heads = (text: string, parseWith: (line: string) => unknown) =>
  [`x:${text}`, `x: a${text}b`, text, `${text}: x`, `connection: ${text}`, `connection: a${text}b`].map(line =>
    outcome(() => parseWith(line)),
  )

const headersOf = (headers: Record<string, string>) => {
  const made = new Headers()
  // Bun refuses some of them before anything here sees them.
  for (const [name, value] of Object.entries(headers)) outcome(() => made.set(name, value))
  return made
}

const asked = (headers: Record<string, string>) => new Request('http://localhost/', { headers: headersOf(headers) })
const pair = ([name, value]: readonly [string, string]): [string, string] => [name, value]
const nobody = () => Promise.reject(new Error('nobody takes it'))
const said = (text: string) => ({ id: 'm', role: 'user', parts: [{ type: 'text', text }] }) as never

/** Files that nobody has: patterns are compared with their names. */
const files = {
  cwd: '/',
  env: {},
  signal: new AbortController().signal,
  environment: {
    files: { info: async () => ({}), list: async () => [{ name: 'a'.repeat(255), type: 'file' }] },
    spawn: async () => ({
      stdout: new Response(Array.from({ length: 200 }, () => `1 /${'a/'.repeat(100)}\0`).join('')).body,
      stderr: new Response('').body,
      exited: Promise.resolve({ exitCode: 0 }),
      kill: () => {},
    }),
  },
} as never

const bytewise = (text: string) =>
  createByteSource(Readable.from(Array.from(Buffer.from(text.slice(0, 16_384)), byte => Buffer.of(byte))))

async function drained(values: AsyncIterable<unknown>): Promise<void> {
  for await (const each of values)
    if (typeof each === 'object' && each && 'body' in each) await drained(each.body as never)
}

/** An archive whose member has this description. */
function tarWith(text: string): Buffer {
  const header = Buffer.alloc(512)
  header.write('x', 0)
  header.write(Buffer.byteLength(text).toString(8).padStart(11, '0'), 124)
  header.write('x', 156)
  header.fill(' ', 148, 156)
  header.write(
    header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0'),
    148,
  )
  return header
}

function outcome(act: () => unknown): unknown {
  try {
    return act()
  } catch (error) {
    return error
  }
}

/** Those that are given their text in single bytes, or do much for each. */
export const costly: readonly string[] = [
  'the body of an answer',
  'a head that comes in single bytes',
  'a command that rules are compared with',
  'the stream of a model',
  'what e2b says',
  'a form',
  'a pattern of grep',
]
