import {
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { ask } from '../support/client.ts'
import { leftovers } from '../support/leftovers.ts'
import { type ModelServer, startModelServer } from '../support/model-server.ts'
import { executable, plainEnvironment, temporaryDirectory } from '../support/server.ts'
import { root } from './page.ts'

/** A reader who follows one page, in an empty directory, with a terminal for the server and one for everything else. */
export interface Session extends AsyncDisposable {
  /** What the providers of models answer. */
  model: ModelServer
  write(name: string, content: string): void
  /** Runs commands in the second terminal, which keeps its variables and functions. Throws when they fail. */
  run(commands: string): Promise<string>
  /** Runs commands that start a server, which ends the one before. Resolves when it listens. */
  serve(commands: string): Promise<void>
}

export function openSession(): Session {
  const directory = temporaryDirectory()
  const at = (name: string) => join(directory, name)
  for (const name of ['work', 'bin', 'home']) mkdirSync(at(name))
  symlinkSync(executable, at('bin/threadbox'))
  symlinkSync(process.execPath, at('bin/bun'))
  // What a reader's project would have from npm.
  symlinkSync(join(root, 'node_modules'), at('work/node_modules'))
  const model = startModelServer()
  const modelUrl = model.access('openai-chat').baseUrl
  const providers = ['ANTHROPIC', 'OPENAI', 'GEMINI', 'OPENROUTER', 'OLLAMA']
  const env = {
    ...plainEnvironment,
    PATH: `${at('bin')}:${plainEnvironment.PATH}`,
    HOME: at('home'),
    THREADBOX_DATA_DIR: at('data'),
    ...Object.fromEntries(providers.map(name => [`${name}_BASE_URL`, modelUrl])),
  }
  let key = ''
  let server: { url: string; shell: Bun.Subprocess<'ignore', 'pipe', 'pipe'>; output: Promise<string> } | undefined

  /** What a page has in place of what differs from machine to machine. */
  const localized = (text: string) =>
    text
      .replaceAll('tbx_...', key)
      .replaceAll(/(_KEY=)\.\.\./g, '$1sk-test-key')
      .replaceAll('localhost:7070', server ? new URL(server.url).host : 'localhost:7070')
      .replaceAll(/https?:\/\/(gpu:8000|lab\.example)\/v1/g, modelUrl)

  const start = (commands: string, more: Record<string, string> = {}) =>
    Bun.spawn(['bash', '-euo', 'pipefail', '-c', commands], {
      cwd: at('work'),
      env: { ...env, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
    })

  async function stop(): Promise<void> {
    if (!server) return
    const { shell, output } = server
    server = undefined
    process.kill(serverOf(shell.pid), 'SIGTERM')
    const code = await shell.exited
    if (code !== 0) throw new Error(`the server ended with ${code}: ${await output}`)
  }

  async function serve(commands: string): Promise<void> {
    await stop()
    const shell = start(localized(commands), { THREADBOX_PORT: '0' })
    const errors = shell.stderr.text()
    let printed = ''
    const { promise: listening, resolve } = Promise.withResolvers<string>()
    const whole = (async () => {
      const decoder = new TextDecoder()
      for await (const bytes of shell.stdout) {
        printed += decoder.decode(bytes, { stream: true })
        const [, url] = /^threadbox listening on (\S+)$/m.exec(printed) ?? []
        key ||= /\btbx_[\w-]+\s/.exec(printed)?.[0].trim() ?? ''
        if (url && key) resolve(url)
      }
      resolve('')
      return printed + (await errors)
    })()
    const url = await listening
    if (!url) throw new Error(`the server ended with ${await shell.exited}: ${await whole}`)
    server = { url, shell, output: whole }
  }

  async function run(commands: string): Promise<string> {
    if (!server) await serve('threadbox serve')
    const state = at('state')
    const script = `[ ! -e ${state} ] || . ${state}
trap 'status=$?; { export -p; declare -f; } > ${state}; exit $status' EXIT
set -a
THREADBOX_URL=${server?.url}
${localized(commands)}`
    const shell = start(script)
    const [stdout, stderr, code] = await Promise.all([shell.stdout.text(), shell.stderr.text(), shell.exited])
    if (code !== 0) throw new Error(`exit code ${code}\n${stdout}${stderr}`)
    return stdout
  }

  return {
    model,
    serve,
    run,
    write(name, content) {
      mkdirSync(dirname(at(`work/${name}`)), { recursive: true })
      writeFileSync(at(`work/${name}`), localized(content))
    },
    async [Symbol.asyncDispose]() {
      if (!server && existsSync(at('data'))) await serve('threadbox serve')
      if (server) {
        const { url } = server
        const { body } = await ask(url, 'GET', '/v1/sandboxes', { key })
        for (const { id } of body.sandboxes) await ask(url, 'DELETE', `/v1/sandboxes/${id}`, { key })
        await stop()
      }
      await model.stop()
      const left = await leftovers(`${at('data')}/`)
      rmSync(directory, { recursive: true })
      if (left.length > 0) throw new Error(`left behind:\n${left.join('\n')}`)
    },
  }
}

/** The server that a shell waits for, or the shell itself when it has become the server. */
function serverOf(pid: number): number {
  if (readlinkSync(`/proc/${pid}/exe`) === realpathSync(executable)) return pid
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ')[0])
}
