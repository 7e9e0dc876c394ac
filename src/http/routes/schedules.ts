import { Type } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { bounds } from '../../bounds.ts'
import type { Runtime } from '../../core/runtime.ts'
import {
  changeSchedule,
  createSchedule,
  getSchedule,
  listOwnScheduleRuns,
  listOwnSchedules,
  removeSchedule,
  runScheduleNow,
} from '../../core/schedules/schedules.ts'
import type { Schedule, ScheduleRun } from '../../model/schedule.ts'
import { json } from '../body.ts'
import { getCaller } from '../caller.ts'
import { CommandLine, Id, PageSize, Slug } from '../schema.ts'

const MAX_TIMEOUT_MS = 86_400_000

const CreateSchedule = Type.Object(
  {
    name: Type.Optional(Type.String({ minLength: 1, maxLength: bounds.name })),
    cron: Type.String({
      maxLength: bounds.cron,
      description: 'Minute, hour, day of the month, month and day of the week, as `30 9 * * MON-FRI`; or `@daily`.',
    }),
    timeZone: Type.Optional(
      Type.String({ maxLength: bounds.word, description: 'An IANA name, as `Europe/Berlin`. `UTC` when absent.' }),
    ),
    agent: Slug,
    prompt: Type.Optional(Type.String({ minLength: 1, maxLength: bounds.systemPrompt })),
    command: Type.Optional(CommandLine),
    sandbox: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: bounds.id,
        description: '`new`: each run gets its own (the default). `same`: all share one. Or the id of one.',
      }),
    ),
    timeoutMs: Type.Optional(
      Type.Integer({
        minimum: 1000,
        maximum: MAX_TIMEOUT_MS,
        description: 'How long a run may take; an hour when absent.',
      }),
    ),
    keep: Type.Optional(
      Type.Boolean({ description: 'It goes on after its key was revoked or has expired. For the scope `admin`.' }),
    ),
    paused: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
)
const ChangeSchedule = Type.Partial(CreateSchedule, { additionalProperties: false })
const ScheduleParams = Type.Object({ scheduleId: Type.String() })
const Page = Type.Object({ limit: Type.Optional(PageSize), before: Type.Optional(Id) })

const DEFAULT_PAGE = 50

/** One more row than the page has is read, to see whether another page follows. */
const toPage = ({ limit, before }: { limit?: string; before?: string }) => {
  const size = Number(limit ?? DEFAULT_PAGE)
  return { size, limit: size + 1, ...(before && { before }) }
}

const nextBefore = (found: readonly { id: string }[], size: number) =>
  found.length > size ? (found[size - 1]?.id ?? null) : null

export const scheduleRoutes = (runtime: Runtime) =>
  new Elysia({ prefix: '/v1/schedules' })
    .post(
      '/',
      ({ request, body, status }) => status(201, show(createSchedule(runtime, getCaller(request), body))),
      json(CreateSchedule),
    )
    .get(
      '/',
      ({ request, query }) => {
        const { size, ...page } = toPage(query)
        const found = listOwnSchedules(runtime, getCaller(request), page)
        return { schedules: found.slice(0, size).map(show), nextBefore: nextBefore(found, size) }
      },
      { query: Page },
    )
    .get(
      '/:scheduleId',
      ({ request, params: { scheduleId } }) => show(getSchedule(runtime, getCaller(request), scheduleId)),
      { params: ScheduleParams },
    )
    .patch(
      '/:scheduleId',
      ({ request, params: { scheduleId }, body }) =>
        show(changeSchedule(runtime, getCaller(request), scheduleId, body)),
      { params: ScheduleParams, ...json(ChangeSchedule) },
    )
    .delete(
      '/:scheduleId',
      ({ request, params: { scheduleId }, status }) => {
        removeSchedule(runtime, getCaller(request), scheduleId)
        return status(204, undefined)
      },
      { params: ScheduleParams },
    )
    .post(
      '/:scheduleId/run',
      ({ request, params: { scheduleId }, status }) =>
        status(202, showRun(runScheduleNow(runtime, getCaller(request), scheduleId))),
      { params: ScheduleParams },
    )
    .get(
      '/:scheduleId/runs',
      ({ request, params: { scheduleId }, query }) => {
        const { size, ...page } = toPage(query)
        const found = listOwnScheduleRuns(runtime, getCaller(request), scheduleId, page)
        return { runs: found.slice(0, size).map(showRun), nextBefore: nextBefore(found, size) }
      },
      { params: ScheduleParams, query: Page },
    )

const show = (schedule: Schedule) => ({
  id: schedule.id,
  name: schedule.name,
  cron: schedule.cron,
  timeZone: schedule.timeZone,
  agent: schedule.agentSlug,
  prompt: schedule.prompt ?? null,
  command: schedule.command ?? null,
  sandbox: schedule.sandbox,
  timeoutMs: schedule.timeoutMs,
  keyId: schedule.keyId ?? null,
  keep: schedule.keep,
  paused: schedule.pausedAt !== undefined,
  pausedAt: schedule.pausedAt ?? null,
  pausedBy: schedule.pausedAt === undefined ? null : (schedule.pausedBy ?? 'request'),
  nextAt: schedule.nextAt ?? null,
  createdAt: schedule.createdAt,
  updatedAt: schedule.updatedAt,
})

/** A run that has not begun has chosen ids for its sandbox and thread, but neither exists yet. */
const showRun = (run: ScheduleRun) => {
  const { status, pid, runId } = run
  const hasPlace = runId !== undefined || pid !== undefined
  return {
    id: run.id,
    scheduleId: run.scheduleId,
    trigger: run.trigger,
    status,
    dueAt: run.dueAt,
    startedAt: run.startedAt ?? null,
    endedAt: run.endedAt ?? null,
    sandboxId: hasPlace ? run.sandboxId : null,
    threadId: runId === undefined ? null : run.threadId,
    runId: runId ?? null,
    pid: pid ?? null,
    exitCode: run.exitCode ?? null,
    error: run.error ?? null,
  }
}
