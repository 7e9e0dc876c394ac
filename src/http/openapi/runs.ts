import { Type } from '@sinclair/typebox'
import { answer, nullable, type Operations, Timestamp } from './operation.ts'

const run = {
  id: Type.String(),
  threadId: Type.String(),
  sandboxId: Type.String(),
  messageId: nullable(Type.String({ description: 'The reply that it made, or went on with.' })),
  status: Type.String({
    description: '`active`, then `waiting`, `completed`, `cancelled`, `failed` or `interrupted`.',
  }),
  model: nullable(Type.String()),
  usage: Type.Object({
    inputTokens: Type.Integer(),
    outputTokens: Type.Integer(),
    totalTokens: Type.Integer(),
    totalCostUsd: Type.Number(),
  }),
  error: nullable(Type.String()),
  startedAt: Timestamp,
  endedAt: nullable(Timestamp),
  durationMs: nullable(Type.Integer()),
}

const RunSummary = Type.Object(run, { title: 'RunSummary' })

const ToolCall = Type.Object(
  { callId: Type.String(), name: Type.String(), state: Type.String() },
  { title: 'ToolCall' },
)

const Run = Type.Object(
  { ...run, tools: Type.Array(ToolCall, { description: 'What its reply has called.' }) },
  { title: 'Run' },
)

const RunPage = Type.Object(
  {
    runs: Type.Array(RunSummary),
    nextBefore: nullable(Type.String({ description: 'The next page is asked for with `before` set to this.' })),
  },
  { title: 'RunPage' },
)

const RunEvent = Type.Object(
  {
    seq: Type.Integer({ description: 'As in the ids of the stream; grows, and numbers may be left out.' }),
    at: nullable(
      Type.String({ format: 'date-time', description: 'When it was made. Null in runs of earlier versions.' }),
    ),
    chunk: Type.Object({ type: Type.String() }, { additionalProperties: true }),
  },
  { title: 'RunEvent' },
)

const RunEventPage = Type.Object(
  {
    events: Type.Array(RunEvent),
    nextAfter: nullable(
      Type.Integer({
        description:
          'The next page is asked for with `after` set to this. Null when the run has ended and this is all.',
      }),
    ),
  },
  { title: 'RunEventPage' },
)

export const runOperations: Operations = {
  'GET /v1/runs': {
    id: 'listRuns',
    summary: 'Lists the runs of all sandboxes, newest first',
    tag: 'Threads',
    answers: { 200: answer(RunPage) },
  },
  'GET /v1/runs/:runId': {
    id: 'getRun',
    summary: 'Gives a run with the tools that it called',
    tag: 'Threads',
    answers: { 200: answer(Run) },
    errors: ['run_not_found'],
  },
  'GET /v1/runs/:runId/events': {
    id: 'listRunEvents',
    summary: "Lists the chunks of a run's stream with their times",
    tag: 'Threads',
    description:
      'As the profile `ai-7` has them, in whatever profile the run was. Kept for a week after the run, and 512 MB of all runs together, compressed; a run whose events are gone has none.',
    answers: { 200: answer(RunEventPage) },
    errors: ['run_not_found'],
  },
}
