import { type Static, Type } from '@sinclair/typebox'
import { bounds } from '../../../bounds.ts'
import { NO_NUL, Variables } from '../../schema.ts'

// Fields that clients may send and that have no meaning here are ignored, as E2B ignores them.
const lenient = { additionalProperties: true } as const

/** How long a sandbox may live, in seconds: a year. */
const MAX_SECONDS = 365 * 86_400

const Seconds = Type.Integer({ minimum: 0, maximum: MAX_SECONDS })
const Name = Type.String({ minLength: 1, maxLength: bounds.id, ...NO_NUL })
const Rules = Type.Array(Type.String({ minLength: 1, maxLength: bounds.networkRule }), {
  maxItems: bounds.networkRules,
})

const nullable = <Field extends ReturnType<typeof Type.Array> | ReturnType<typeof Type.Boolean>>(field: Field) =>
  Type.Optional(Type.Union([field, Type.Null()]))

const Network = {
  allowOut: Type.Optional(Type.Union([Rules, Type.Null()])),
  denyOut: Type.Optional(Type.Union([Rules, Type.Null()])),
  rules: Type.Optional(Type.Unknown()),
  egressProxy: Type.Optional(Type.Unknown()),
}

export const CreateSandbox = Type.Object(
  {
    templateID: Name,
    timeout: Type.Optional(Seconds),
    metadata: Type.Optional(
      Type.Record(Type.String({ maxLength: bounds.name }), Type.String({ maxLength: bounds.header }), {
        maxProperties: 100,
      }),
    ),
    envVars: Type.Optional(Variables),
    allow_internet_access: nullable(Type.Boolean()),
    network: Type.Optional(
      Type.Union([
        Type.Object(
          {
            ...Network,
            allowPublicTraffic: nullable(Type.Boolean()),
            maskRequestHost: Type.Optional(Type.Union([Type.String({ maxLength: 300 }), Type.Null()])),
            httpsPorts: Type.Optional(Type.Unknown()),
          },
          lenient,
        ),
        Type.Null(),
      ]),
    ),
    autoPause: nullable(Type.Boolean()),
    autoResume: Type.Optional(Type.Union([Type.Object({ enabled: Type.Boolean() }, lenient), Type.Null()])),
    volumeMounts: Type.Optional(Type.Unknown()),
    mcp: Type.Optional(Type.Unknown()),
    iam: Type.Optional(Type.Unknown()),
  },
  lenient,
)
export type CreateSandbox = Static<typeof CreateSandbox>

export const Connect = Type.Object({ timeout: Type.Optional(Seconds), autoPause: nullable(Type.Boolean()) }, lenient)
export const Timeout = Type.Object({ timeout: Seconds }, lenient)
export const Refresh = Type.Object({ duration: Type.Optional(Seconds) }, lenient)
export const ChangeNetwork = Type.Object({ ...Network, allow_internet_access: nullable(Type.Boolean()) }, lenient)
export type ChangeNetwork = Static<typeof ChangeNetwork>

export const Pause = Type.Object({}, lenient)

const Query = Type.Optional(Type.String({ maxLength: bounds.header }))
export const List = Type.Object({
  metadata: Query,
  state: Query,
  limit: Query,
  nextToken: Query,
  startedAfter: Query,
  template: Query,
  order: Query,
})
export type ListQuery = Static<typeof List>

export const MetricsQuery = Type.Object({ start: Query, end: Query })

export const SandboxParams = Type.Object({ sandboxID: Type.String({ maxLength: bounds.id }) })

export const TakeSnapshot = Type.Object({ name: Type.Optional(Type.Union([Name, Type.Null()])) }, lenient)
export const Fork = Type.Object(
  { count: Type.Optional(Type.Integer({ minimum: 1, maximum: bounds.forks })), timeout: Type.Optional(Seconds) },
  lenient,
)
export const SnapshotsQuery = Type.Object({ sandboxID: Query, name: Query, limit: Query, nextToken: Query })
export const TemplateParams = Type.Object({ templateID: Type.String({ maxLength: bounds.id }) })
