import { Type } from '@sinclair/typebox'
import { answer, EVENT_STREAM, Events, nullable, type Operations, Timestamp } from './operation.ts'

const Server = Type.Object(
  {
    version: Type.String(),
    startedAt: Timestamp,
    machine: Type.Object({
      cpus: Type.Integer(),
      load: Type.Number({ description: 'Of the last minute.' }),
      memoryBytes: Type.Integer(),
      availableMemoryBytes: Type.Integer(),
    }),
    disk: Type.Object({
      level: Type.String({ description: '`enough`, `low` or `full`.' }),
      freeMb: Type.Integer(),
      reserveMb: Type.Integer(),
    }),
    memoryBytes: Type.Integer({ description: "The server's own." }),
    eventLoopDelayMs: Type.Optional(Type.Object({ p50: Type.Number(), p99: Type.Number(), max: Type.Number() })),
    backends: Type.Array(
      Type.Object({
        name: Type.String(),
        isolation: Type.String({ description: '`namespaces`, `container`, `gvisor` or `microvm`: the weakest first.' }),
        isolations: Type.Array(Type.String(), {
          description: 'All that its sandboxes can have: first that of one that asks for nothing.',
        }),
        isDefault: Type.Boolean(),
        takesNew: Type.Boolean({ description: 'New sandboxes may go there.' }),
      }),
    ),
    engines: Type.Array(Type.String()),
    defaultModel: nullable(Type.String()),
    settings: Type.Array(
      Type.Object({
        name: Type.String(),
        help: Type.String(),
        value: Type.Optional(Type.String({ description: 'Of a secret, dots.' })),
        source: Type.String({ description: '`default`, `file`, `environment` or `flag`.' }),
      }),
    ),
  },
  { title: 'Server' },
)

const Check = Type.Object(
  {
    name: Type.String(),
    ok: Type.Boolean(),
    required: Type.Boolean(),
    detail: Type.String(),
    remedy: Type.Optional(Type.String()),
    isolation: Type.Optional(
      Type.String({ description: 'It is about sandboxes of this class alone, which cannot be made while it fails.' }),
    ),
  },
  { title: 'Check' },
)

const Selftest = Type.Object(
  {
    version: Type.String(),
    startedAt: Timestamp,
    ms: Type.Number(),
    isRoot: Type.Boolean({ description: 'It ran as root, who can confine more than an ordinary user can.' }),
    backends: Type.Array(
      Type.Object({
        backend: Type.String(),
        runtime: Type.Optional(Type.String({ description: "The engine's, on docker." })),
        isolation: Type.Optional(Type.String()),
        notReady: Type.Optional(Type.String({ description: 'It was not tried: what its checks lack.' })),
        failed: Type.Optional(Type.String({ description: 'Why it could not be tried.' })),
        ms: Type.Number(),
        probes: Type.Array(
          Type.Object({
            id: Type.String({ description: 'The area and a name, as `mounts/bind`.' }),
            area: Type.String(),
            tried: Type.String(),
            meaning: Type.String({ description: 'What follows where it does not hold.' }),
            outcome: Type.String({ description: '`held`, `leaked`, `untried` or `excused`.' }),
            found: Type.Array(Type.String(), { description: 'What got through, or why it was not tried.' }),
            ms: Type.Number(),
          }),
        ),
      }),
    ),
  },
  { title: 'Selftest' },
)

export const serverOperations: Operations = {
  'GET /v1/server': {
    id: 'getServer',
    summary: 'Describes the server, its machine and its settings',
    tag: 'Server',
    description: 'For keys of the team `default`.',
    answers: { 200: answer(Server) },
  },
  'GET /v1/server/checks': {
    id: 'checkServer',
    summary: "Tries what the server's backends need",
    tag: 'Server',
    answers: { 200: answer(Type.Object({ checks: Type.Array(Check) })) },
  },
  'GET /v1/server/selftest': {
    id: 'getSelftest',
    summary: 'The last result of `threadbox selftest` on this server',
    tag: 'Server',
    description: 'For keys of the team `default`. Null when no result was kept.',
    answers: { 200: answer(Type.Object({ selftest: nullable(Selftest) })) },
  },
  'GET /metrics': {
    id: 'readMetrics',
    summary: 'Figures of the server in the text format of Prometheus',
    tag: 'Server',
    description: 'For keys of the team `default` with the scope `metrics`.',
    answers: { 200: { description: 'The figures.', content: { 'text/plain': Type.String() } } },
  },
  'GET /v1/events': {
    id: 'followEvents',
    summary: 'Follows what happens in the team, as server-sent events',
    tag: 'Server',
    description:
      'Each event has a `type`, the ids that it is about, and `createdAt`. With `Last-Event-ID` it begins after that event, as long as it is kept: a day, and the newest 100,000. `events.lost` says that it is not, and lists are to be read anew.',
    answers: { 200: { description: 'Lines `data: <json>`, without an end.', content: { [EVENT_STREAM]: Events } } },
  },
}
