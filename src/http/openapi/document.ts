import type { TSchema } from '@sinclair/typebox'
import { version } from '../../../package.json'
import { type ErrorCode, statusOf } from '../../errors.ts'
import { isObject } from '../../read/json.ts'
import { accountOperations } from './account.ts'
import { agentOperations } from './agents.ts'
import { approvalOperations } from './approvals.ts'
import { auditOperations } from './audit.ts'
import { fileOperations } from './files.ts'
import { mcpOperations } from './mcp.ts'
import type { Answer, Operation, Operations } from './operation.ts'
import { previewPaths } from './preview.ts'
import { processOperations } from './processes.ts'
import { runOperations } from './runs.ts'
import { sandboxOperations } from './sandboxes.ts'
import { scheduleOperations } from './schedules.ts'
import { describeSchema, type NamedSchemas } from './schema.ts'
import { secretOperations } from './secrets.ts'
import { serverOperations } from './server.ts'
import { sessionOperations } from './sessions.ts'
import { snapshotOperations } from './snapshots.ts'
import { threadOperations } from './threads.ts'
import { webhookOperations } from './webhooks.ts'

/** A route as the router has it. */
export interface Route {
  method: string
  path: string
  hooks: { params?: unknown; query?: unknown; body?: unknown; detail?: { hide?: boolean } }
}

export const operations: Operations = {
  ...sandboxOperations,
  ...snapshotOperations,
  ...fileOperations,
  ...processOperations,
  ...threadOperations,
  ...runOperations,
  ...approvalOperations,
  ...accountOperations,
  ...serverOperations,
  ...sessionOperations,
  ...webhookOperations,
  ...secretOperations,
  ...scheduleOperations,
  ...auditOperations,
  ...agentOperations,
  ...mcpOperations,
}

/**
 * The API's description by OpenAPI 3.1, https://spec.openapis.org/oas/v3.1.1. Parameters and bodies come from the routes
 * themselves, the rest from `operations`. Throws for a route that has no operation.
 */
export function describeApi(routes: readonly Route[], publicUrl: string | undefined) {
  const named: NamedSchemas = { Error: errorSchema }
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes) {
    if (route.hooks.detail?.hide) continue
    const path = route.path.replace(/(?<=.)\/$/, '').replaceAll(/:(\w+)/g, '{$1}')
    const key = `${route.method} ${route.path.replace(/(?<=.)\/$/, '')}`
    const operation = operations[key]
    if (!operation) throw new Error(`${key} is not described in http/openapi/`)
    paths[path] = {
      ...paths[path],
      [route.method.toLowerCase()]: describeOperation(path, operation, route.hooks, named),
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'threadbox',
      version,
      description: 'Sandboxes and threads for AI agents.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: publicUrl ?? '/' }],
    security: [{ key: [] }, { session: [] }],
    tags: [...new Set(Object.values(operations).map(({ tag }) => tag))].map(name => ({ name })),
    paths: { ...paths, ...previewPaths },
    components: {
      schemas: named,
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'An API key, or a token of a browser.' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'threadbox-PORT',
          description: 'The cookie of a browser that is signed in; __Host-threadbox-PORT on https.',
        },
      },
    },
  }
}

const errorSchema = {
  type: 'object',
  required: ['error', 'message'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: { code: { type: 'string' }, message: { type: 'string' }, field: { type: 'string' } },
      additionalProperties: true,
    },
    message: { type: 'string' },
  },
}

function describeOperation(path: string, operation: Operation, hooks: Route['hooks'], named: NamedSchemas) {
  const { id, summary, tag, description, isPublic } = operation
  const parameters = [...parametersOf('path', hooks.params, named), ...parametersOf('query', hooks.query, named)]
  const body = bodyOf(operation, hooks, named)
  return {
    operationId: id,
    summary,
    tags: [tag],
    ...(description !== undefined && { description }),
    ...(isPublic && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: body }),
    responses: { ...errorsOf(path, operation, body !== undefined), ...answersOf(operation.answers, named) },
  }
}

function parametersOf(place: 'path' | 'query', schema: unknown, named: NamedSchemas) {
  if (!isObject(schema) || !isObject(schema.properties)) return []
  const required = Array.isArray(schema.required) ? schema.required : []
  return Object.entries(schema.properties).map(([name, one]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    schema: describeSchema(one as TSchema, named),
  }))
}

function bodyOf({ body }: Operation, hooks: Route['hooks'], named: NamedSchemas) {
  const content = body?.content ?? (hooks.body ? { 'application/json': hooks.body as TSchema } : undefined)
  return content && { required: body?.isOptional !== true, content: contentOf(content, named) }
}

function answersOf(answers: Operation['answers'], named: NamedSchemas) {
  const described = Object.entries(answers).map(([status, { description, content, headers }]: [string, Answer]) => [
    status,
    {
      description,
      ...(content && { content: contentOf(content, named) }),
      ...(headers && { headers: headersOf(headers) }),
    },
  ])
  return Object.fromEntries(described) as Record<string, unknown>
}

const contentOf = (content: Readonly<Record<string, TSchema>>, named: NamedSchemas) =>
  Object.fromEntries(Object.entries(content).map(([type, schema]) => [type, { schema: describeSchema(schema, named) }]))

const headersOf = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(
    Object.entries(headers).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  )

/** The errors that a path alone can cause. */
const errorsByPath: readonly [RegExp, ErrorCode][] = [
  [/\{sandboxId\}/, 'sandbox_not_found'],
  [/\{threadId\}/, 'thread_not_found'],
  [/\{pid\}/, 'process_not_found'],
  [/\{approvalId\}/, 'approval_not_found'],
  [/\{slug\}/, 'agent_not_found'],
]

const everywhere = [
  'invalid_request',
  'unauthorized',
  'forbidden',
  'rate_limit_exceeded',
  'internal_error',
  'shutting_down',
  'disk_full',
] as const

function errorsOf(path: string, { errors = [], isPublic }: Operation, hasBody: boolean) {
  if (isPublic && errors.length === 0) return {}
  const codes: ErrorCode[] = [
    ...everywhere,
    ...(hasBody ? (['payload_too_large'] as const) : []),
    ...errorsByPath.filter(([pattern]) => pattern.test(path)).map(([, code]) => code),
    ...errors,
  ]
  const byStatus = Map.groupBy([...new Set(codes)].sort(), statusOf)
  const described = [...byStatus].map(([status, codes]) => [status, errorResponse(status, codes)])
  return Object.fromEntries(described) as Record<string, unknown>
}

const errorResponse = (status: number, codes: readonly ErrorCode[]) => ({
  description: codes.map(code => `\`${code}\``).join(', '),
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
  ...((status === 429 || status === 503) && {
    headers: headersOf({ 'retry-after': 'Seconds to wait, where they are known.' }),
  }),
})
