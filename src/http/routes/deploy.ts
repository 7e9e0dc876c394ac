import { Elysia } from 'elysia'
import { excerpt } from '../../bounds.ts'
import { assertKey } from '../../core/access/caller.ts'
import { isSlug } from '../../core/agents/agent-files.ts'
import { type DeployRequest, deployAgent } from '../../core/deploy/deploy.ts'
import type { Runtime } from '../../core/runtime.ts'
import { ApiError } from '../../errors.ts'
import { isObject, type JsonObject } from '../../read/json.ts'
import { parse } from '../body.ts'
import { getCaller } from '../caller.ts'
import { errorEvent } from '../failure.ts'
import { readUpload } from '../upload.ts'

const MAX_BUNDLE_BYTES = 50 * 1024 * 1024
const MAX_TEMPLATE_BYTES = 200 * 1024 * 1024

const maxBytes = { bundle: MAX_BUNDLE_BYTES, templateArchive: MAX_TEMPLATE_BYTES } as const

/** Answers with a line of JSON for each step of the deploy, then the result or an error. */
export const deployRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/agents/deploy' }).post(
    '/',
    async ({ request }) => {
      const caller = getCaller(request)
      assertKey(caller, 'deploy agents')
      await runtime.diskSpace.assertEnough()
      const deploy = await readDeploy(runtime, request)
      return lines(async (send, signal) => {
        using _bundle = deploy.bundle
        using _template = deploy.template
        const steps = deployAgent(runtime, caller, deploy, signal)
        for (;;) {
          const { value, done } = await steps.next()
          if (!done) send({ type: 'status', message: value })
          else {
            const { agentId, createdAt, version, id } = value
            const about = { slug: deploy.slug, agentId, version, deploymentId: id }
            return send({
              type: 'result',
              result: { ...about, bundleUrl: `sha256:${deploy.bundle.name}`, deployedAt: createdAt },
            })
          }
        }
      }, runtime.log)
    },
    { parse: 'none' },
  )

async function readDeploy({ bundles }: Runtime, request: Request): Promise<DeployRequest> {
  const { fields, files } = await readUpload(request, {
    files: Object.keys(maxBytes),
    keep: (field, body) => bundles.put(field, body, maxBytes[field as keyof typeof maxBytes]),
  })
  try {
    const slug = fields.get('slug') ?? ''
    if (!isSlug(slug)) throw wrong('slug', 'must be letters, digits and hyphens, as my-agent')
    const language = fields.get('agentLanguage') ?? 'js'
    if (language !== 'js') throw wrong('agentLanguage', `only js can be deployed here, not ${excerpt(language)}`)
    const bundle = files.get('bundle')
    if (!bundle || bundle.byteLength === 0) throw wrong('bundle', 'required')
    return {
      ...{ slug, bundle, template: files.get('templateArchive'), engine: fields.get('engine') },
      metadata: parseJsonField(fields, 'metadata'),
      sandboxConfig: parseJsonField(fields, 'sandboxConfig'),
      mcpConfig: parseJsonField(fields, 'mcpConfig'),
    }
  } catch (error) {
    for (const file of files.values()) file[Symbol.dispose]()
    throw error
  }
}

function parseJsonField(fields: ReadonlyMap<string, string>, name: string): JsonObject | undefined {
  const text = fields.get(name)
  if (text === undefined) return undefined
  const value = parse(Buffer.from(text), name)
  if (isObject(value)) return value
  throw wrong(name, 'must be a JSON object')
}

const wrong = (field: string, what: string) => new ApiError('invalid_request', `${field}: ${what}`, { field })

/** Answers with a line of JSON for each event. When the client goes away, the work is aborted. */
function lines(
  work: (send: (event: object) => void, signal: AbortSignal) => Promise<void>,
  log: Runtime['log'],
): Response {
  const abort = new AbortController()
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const send = (event: object) => {
        if (!abort.signal.aborted) controller.enqueue(encoder.encode(`${JSON.stringify(event)}\n`))
      }
      try {
        await work(send, abort.signal)
      } catch (error) {
        const known = error instanceof ApiError
        if (!known && !abort.signal.aborted)
          log(`deploy: ${error instanceof Error ? error.stack : String(error)}`, 'error')
        send(errorEvent(error, 'The deploy failed.'))
      }
      if (!abort.signal.aborted) controller.close()
    },
    cancel: () => abort.abort(new Error('the client went away')),
  })
  return new Response(body, { headers: { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' } })
}
