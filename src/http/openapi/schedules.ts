import { Type } from '@sinclair/typebox'
import { answer, noContent, nullable, type Operations, Timestamp } from './operation.ts'

const Schedule = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    cron: Type.String(),
    timeZone: Type.String(),
    agent: Type.String(),
    prompt: nullable(Type.String()),
    command: nullable(Type.String()),
    sandbox: Type.String({ description: '`new`, `same`, or the id of one.' }),
    timeoutMs: Type.Integer(),
    keyId: nullable(Type.String({ description: 'The key whose rights it has; null for the configured one.' })),
    keep: Type.Boolean({ description: 'It goes on after its key was revoked or has expired.' }),
    paused: Type.Boolean(),
    pausedAt: nullable(Timestamp),
    pausedBy: nullable(Type.Union([Type.Literal('request'), Type.Literal('key')])),
    nextAt: nullable(Timestamp),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { title: 'Schedule' },
)

const ScheduleRun = Type.Object(
  {
    id: Type.String(),
    scheduleId: Type.String(),
    trigger: Type.Union([Type.Literal('due'), Type.Literal('missed'), Type.Literal('request')]),
    status: Type.Union(
      [...['due', 'running', 'completed', 'waiting', 'failed', 'cancelled', 'interrupted', 'timed_out', 'skipped']].map(
        status => Type.Literal(status),
      ),
    ),
    dueAt: Timestamp,
    startedAt: nullable(Timestamp),
    endedAt: nullable(Timestamp),
    sandboxId: nullable(Type.String()),
    threadId: nullable(Type.String()),
    runId: nullable(Type.String({ description: 'Of a prompt: its run, see `GET /v1/runs/{runId}`.' })),
    pid: nullable(Type.Integer({ description: 'Of a command: its process in the sandbox, which has its output.' })),
    exitCode: nullable(Type.Integer()),
    error: nullable(Type.String({ description: 'Why it failed, was skipped or was ended.' })),
  },
  { title: 'ScheduleRun' },
)

export const scheduleOperations: Operations = {
  'POST /v1/schedules': {
    id: 'createSchedule',
    summary: 'Runs an agent or a command at certain times from now on',
    description: 'Send either `prompt` or `command`. It has the rights of the key that makes it.',
    tag: 'Schedules',
    answers: { 201: answer(Schedule) },
    errors: ['agent_not_found', 'sandbox_not_found', 'forbidden', 'conflict'],
  },
  'GET /v1/schedules': {
    id: 'listSchedules',
    summary: 'Lists schedules, newest first',
    tag: 'Schedules',
    answers: { 200: answer(Type.Object({ schedules: Type.Array(Schedule), nextBefore: nullable(Type.String()) })) },
  },
  'GET /v1/schedules/:scheduleId': {
    id: 'getSchedule',
    summary: 'Gives a schedule',
    tag: 'Schedules',
    answers: { 200: answer(Schedule) },
    errors: ['not_found'],
  },
  'PATCH /v1/schedules/:scheduleId': {
    id: 'changeSchedule',
    summary: 'Changes, pauses or resumes a schedule',
    description: 'But for `{"paused": true}` alone, the schedule then has the rights of the key that changed it.',
    tag: 'Schedules',
    answers: { 200: answer(Schedule) },
    errors: ['not_found', 'agent_not_found', 'sandbox_not_found', 'forbidden'],
  },
  'DELETE /v1/schedules/:scheduleId': {
    id: 'deleteSchedule',
    summary: 'Deletes a schedule with its history',
    description: 'A run of it that has begun goes on.',
    tag: 'Schedules',
    answers: { 204: noContent },
    errors: ['not_found', 'forbidden'],
  },
  'POST /v1/schedules/:scheduleId/run': {
    id: 'runSchedule',
    summary: 'Runs a schedule now, also a paused one',
    tag: 'Schedules',
    answers: { 202: answer(ScheduleRun) },
    errors: ['not_found', 'forbidden', 'conflict'],
  },
  'GET /v1/schedules/:scheduleId/runs': {
    id: 'listScheduleRuns',
    summary: 'Lists the last 200 runs of a schedule, newest first',
    tag: 'Schedules',
    answers: { 200: answer(Type.Object({ runs: Type.Array(ScheduleRun), nextBefore: nullable(Type.String()) })) },
    errors: ['not_found'],
  },
}
