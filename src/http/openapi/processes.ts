import { Type } from '@sinclair/typebox'
import { answer, Bytes, EVENT_STREAM, Events, noContent, nullable, type Operations, Timestamp } from './operation.ts'

const Process = Type.Object(
  {
    pid: Type.Integer(),
    name: nullable(Type.String()),
    command: Type.Union([Type.String(), Type.Array(Type.String())]),
    status: Type.Union([Type.Literal('running'), Type.Literal('exited')]),
    exitCode: nullable(Type.Integer()),
    signal: nullable(Type.String()),
    startedAt: Timestamp,
    endedAt: nullable(Timestamp),
    pty: nullable(Type.Object({ columns: Type.Integer(), rows: Type.Integer() })),
    stdin: Type.Boolean({ description: 'It still takes input.' }),
    outputStart: Type.Integer({ description: 'The offset of the oldest byte that is kept.' }),
    outputEnd: Type.Integer(),
  },
  { title: 'Process' },
)

const StdinText = Type.Object({
  data: Type.Optional(Type.String()),
  encoding: Type.Optional(Type.Union([Type.Literal('text'), Type.Literal('base64')])),
  close: Type.Optional(Type.Boolean()),
})

export const processOperations: Operations = {
  'POST /v1/sandboxes/:sandboxId/processes': {
    id: 'startProcess',
    summary: 'Starts a process that stays',
    tag: 'Processes',
    answers: { 201: answer(Process) },
    errors: ['sandbox_unavailable', 'conflict'],
  },
  'GET /v1/sandboxes/:sandboxId/processes': {
    id: 'listProcesses',
    summary: 'Lists processes, also ended ones',
    tag: 'Processes',
    answers: { 200: answer(Type.Object({ processes: Type.Array(Process) }, { title: 'ProcessList' })) },
    errors: ['sandbox_unavailable'],
  },
  'GET /v1/sandboxes/:sandboxId/processes/:pid': {
    id: 'getProcess',
    summary: 'Gives a process',
    tag: 'Processes',
    answers: { 200: answer(Process) },
    errors: ['sandbox_unavailable'],
  },
  'DELETE /v1/sandboxes/:sandboxId/processes/:pid': {
    id: 'deleteProcess',
    summary: 'Kills the tree of a process and forgets it',
    tag: 'Processes',
    answers: { 204: noContent },
    errors: ['sandbox_unavailable'],
  },
  'GET /v1/sandboxes/:sandboxId/processes/:pid/output': {
    id: 'readProcessOutput',
    summary: "Streams a process's output from an offset",
    tag: 'Processes',
    answers: { 200: { description: 'Its output up to its exit.', content: { [EVENT_STREAM]: Events } } },
    errors: ['sandbox_unavailable'],
  },
  'POST /v1/sandboxes/:sandboxId/processes/:pid/stdin': {
    id: 'writeProcessInput',
    summary: 'Writes to the stdin of a process',
    tag: 'Processes',
    body: { content: { 'application/json': StdinText, 'application/octet-stream': Bytes }, isOptional: true },
    answers: { 204: noContent },
    errors: ['sandbox_unavailable', 'conflict'],
  },
  'POST /v1/sandboxes/:sandboxId/processes/:pid/signal': {
    id: 'signalProcess',
    summary: 'Sends a signal to the process group',
    tag: 'Processes',
    answers: { 204: noContent },
    errors: ['sandbox_unavailable', 'conflict'],
  },
  'POST /v1/sandboxes/:sandboxId/processes/:pid/resize': {
    id: 'resizeTerminal',
    summary: 'Resizes the terminal of a process',
    tag: 'Processes',
    answers: { 204: noContent },
    errors: ['sandbox_unavailable', 'conflict'],
  },
  'GET /v1/sandboxes/:sandboxId/processes/:pid/terminal': {
    id: 'openTerminal',
    summary: 'Opens the terminal of a process as a WebSocket',
    tag: 'Processes',
    answers: { 101: { description: 'The WebSocket. Binary messages are bytes, text messages are JSON.' } },
    errors: ['sandbox_unavailable'],
  },
}
