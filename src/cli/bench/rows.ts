import { connections, proxy } from './network-rows.ts'
import { CPU, p50, type Row, ratio } from './row.ts'

/** Every row of every part, in the order of the table. A baseline comes before the rows that are compared with it. */
export const parts = {
  exec: {
    bash: {
      name: 'fork+exec of bash -c true',
      unit: 'ms',
      taken: 'from the client, in short turns with what it is compared with',
    },
    exec: {
      name: 'warm exec over HTTP',
      unit: 'ms',
      baseline: 'bash',
      goal: ratio('≤', 1.5),
      taken: '`true` in a sandbox that runs',
    },
    'bash-idle': { name: 'bash after idleness', unit: 'ms', taken: 'after 250 ms in which the client does nothing' },
    'exec-idle': {
      name: 'warm exec after idleness',
      unit: 'ms',
      baseline: 'bash-idle',
      goal: ratio('≤', 1.7),
      taken: 'after 250 ms in which the client does nothing',
    },
    'bash-parallel': { name: 'bash, 50 at once', unit: '/s', taken: 'how many end in a second' },
    'exec-parallel': {
      name: 'execs, 50 at once',
      unit: '/s',
      baseline: 'bash-parallel',
      goal: ratio('≥', 0.8),
      taken: 'in one sandbox; how many are answered in a second',
    },
  },
  create: {
    'create-spaced': {
      name: 'create + first exec',
      unit: 'ms',
      baseline: 'bash',
      goal: ratio('≤', 3),
      taken: 'one at a time, 250 ms apart',
    },
    'create-answer': { name: 'create alone', unit: 'ms', baseline: 'bash', taken: 'its part of the row above' },
    'create-row': {
      name: 'create + first exec, back to back',
      unit: 'ms',
      baseline: 'bash',
      goal: ratio('≤', 8),
      taken: '50 in a row',
    },
    delete: {
      name: 'delete, to the answer',
      unit: 'ms',
      goal: p50(10),
      taken: 'of a sandbox in which a process runs, 250 ms after its last use',
    },
    'delete-dead': {
      name: 'delete, to the death of its processes',
      unit: 'ms',
      goal: p50(10),
      taken: 'until the answer is here and the process is gone',
    },
  },
  burst: {
    burst: {
      name: 'burst: create + first exec',
      unit: 'ms',
      taken: '100 at once, each from the beginning of the burst',
    },
    'burst-total': { name: 'burst: all of it', unit: 'ms', goal: p50(1200), taken: 'to the last of the 100' },
    'burst-failed': {
      name: 'burst: failed',
      unit: 'failed',
      goal: p50(0),
      taken: 'creates and execs that were refused or broke',
    },
    'bash-burst': {
      name: 'first 32 of 100 bash at once',
      unit: 'ms',
      taken: 'the 32 that end first, each from the beginning of the burst',
    },
    'burst-spares': {
      name: 'burst: first 32, with 32 spares',
      unit: 'ms',
      baseline: 'bash-burst',
      goal: ratio('≤', 5),
      taken: 'the 32 that answer first of such a burst, with `--spares 32`',
    },
  },
  base: {
    'create-base': {
      name: 'create + first exec, named base',
      unit: 'ms',
      baseline: 'bash',
      goal: ratio('≤', 4),
      taken: 'one at a time, 250 ms apart, from a base of bash and its libraries',
    },
  },
  docker: {
    'create-docker': {
      name: 'create + first exec, docker',
      unit: 'ms',
      baseline: 'bash',
      goal: ratio('≤', 10),
      taken: 'one at a time, 250 ms apart, on the engine of DOCKER_HOST',
    },
  },
  stopped: {
    'create-cold': { name: 'cold create + first exec', unit: 'ms', taken: 'one at a time, without spares' },
    'use-stopped': {
      name: 'use of a stopped sandbox',
      unit: 'ms',
      baseline: 'create-cold',
      goal: ratio('≤', 0.5),
      taken: 'first exec after idleness has stopped it',
    },
  },
  chat: {
    'chat-first': { name: 'chat to its first chunk', unit: 'ms', taken: 'agent echo, warm sandbox' },
    'fan-out-bun': {
      name: 'fan-out of a bare server',
      unit: 'µs',
      taken: 'CPU of a Bun.serve that sends the same bytes, an event and reader',
    },
    'fan-out': {
      name: 'fan-out to 1,000 readers',
      unit: 'µs',
      baseline: 'fan-out-bun',
      goal: ratio('≤', 1.15),
      taken: 'CPU of the server, an event and reader, at 20 events a second',
    },
    'resume-bun': { name: 'the same bytes from a bare server', unit: 'ms', taken: 'one body of a Bun.serve' },
    resume: {
      name: 'resume of 10,000 chunks',
      unit: 'ms',
      baseline: 'resume-bun',
      goal: ratio('≤', 2),
      taken: 'from the first chunk of a reply that has ended',
    },
  },
  bytes: {
    'upload-cat': {
      name: 'cat > file, 1 GiB',
      unit: 'MiB/s',
      taken: '`cat > file` of a pipe full of zeros, in the data directory',
    },
    upload: {
      name: 'upload of 1 GiB',
      unit: 'MiB/s',
      baseline: 'upload-cat',
      goal: ratio('≥', 0.8),
      taken: 'raw bytes over one connection',
    },
    'upload-cpu': { name: 'upload, CPU', unit: 's/GiB', goal: p50(0.5), taken: CPU },
    'download-bun': { name: 'download of 1 GiB, bare server', unit: 'MiB/s', taken: 'a file by a Bun.serve' },
    download: {
      name: 'download of 1 GiB',
      unit: 'MiB/s',
      baseline: 'download-bun',
      goal: ratio('≥', 0.8),
      taken: 'the same file from a sandbox',
    },
    'download-cpu': { name: 'download, CPU', unit: 's/GiB', goal: p50(0.5), taken: CPU },
  },
  output: {
    pipe: { name: 'pipe, 512 MiB', unit: 'MiB/s', taken: '`yes` and `head -c`, read by `cat > /dev/null`' },
    'exec-output': {
      name: 'output of an exec, 512 MiB',
      unit: 'MiB/s',
      baseline: 'pipe',
      goal: ratio('≥', 0.8),
      taken: 'the same command, read as an event stream',
    },
    'exec-output-cpu': { name: 'output of an exec, CPU', unit: 's/GiB', goal: p50(0.5), taken: CPU },
    'process-output': {
      name: 'output of a process, 512 MiB',
      unit: 'MiB/s',
      baseline: 'pipe',
      goal: ratio('≥', 0.8),
      taken: 'the same command with `waitForReader`',
    },
    'process-output-cpu': { name: 'output of a process, CPU', unit: 's/GiB', goal: p50(0.5), taken: CPU },
  },
  proxy,
  connections,
  start: {
    'start-new': { name: 'start to listening, new directory', unit: 'ms', taken: 'from the start of the process' },
    start: {
      name: 'start to listening, 1,000 sandboxes',
      unit: 'ms',
      goal: p50(40),
      taken: 'stopped ones on the disk and in the database',
    },
  },
  memory: {
    'idle-rss': { name: 'idle server, RSS', unit: 'MB', goal: p50(60), taken: 'after one request and 1.5 s' },
    'idle-pss': {
      name: 'idle server, PSS',
      unit: 'MB',
      taken: 'the same moment; pages that others share count in part',
    },
    'active-private': {
      name: 'added by an active sandbox',
      unit: 'MB',
      goal: p50(5),
      taken: 'private memory of all processes, by five sandboxes that have run `true`',
    },
  },
} as const satisfies Record<string, Record<string, Row>>

export type PartName = keyof typeof parts
type KeyOf<Part> = Part extends unknown ? keyof Part : never
export type RowKey = KeyOf<(typeof parts)[PartName]>

export const partNames = Object.keys(parts) as PartName[]

/** The rows of a part with their keys. */
export const listRows = (part: PartName): [RowKey, Row][] => Object.entries(parts[part]) as [RowKey, Row][]
