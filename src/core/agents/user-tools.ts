import { runCommand } from '../../environment/run-command.ts'
import { ApiError } from '../../errors.ts'
import { toolScript } from '../../guest/tools/embedded.ts'
import type { Environment } from '../../plugin-api/index.ts'
import type { Bundles } from '../runtime.ts'

/** An agent's own tools inside its sandbox. All of it is the sandbox's to read, and to break for itself. */

const DIRECTORY = '/opt/threadbox'
/** What the tools print, until it is in the agent's log. */
export const TOOLS_LOG = `${DIRECTORY}/tools.log`

const SCRIPT = `${DIRECTORY}/tools-${Bun.hash(toolScript).toString(36)}.mjs`
const SDK = `${DIRECTORY}/node_modules/@21st-sdk/agent`

/** Brings a bundle into an environment, unless it is there. The command that serves it; flags may follow. */
export async function placeTools(environment: Environment, bundles: Bundles, bundle: string): Promise<string[]> {
  const path = `${DIRECTORY}/${bundle}.mjs`
  if ((await environment.files.info(path))?.size !== (await bundles.size(bundle))) {
    await writeWhole(environment, path, bundles.read(bundle))
  }
  const { executable } = environment
  return executable
    ? [...executable, 'tools', path]
    : [await findRuntime(environment), await placeScript(environment), path]
}

/** Where this program's executable is not inside, a script does the same. */
async function placeScript(environment: Environment): Promise<string> {
  if (await environment.files.info(SCRIPT)) return SCRIPT
  await environment.files.write(`${SDK}/package.json`, Buffer.from('{"type":"module","main":"index.js"}'))
  await environment.files.write(`${SDK}/index.js`, Buffer.from(`export * from ${JSON.stringify(SCRIPT)}\n`))
  await writeWhole(environment, SCRIPT, Buffer.from(toolScript))
  return SCRIPT
}

async function findRuntime(environment: Environment): Promise<string> {
  const { stdout } = await runCommand(environment, { command: 'command -v bun || command -v node' })
  const path = stdout.trim()
  if (path) return path
  throw new ApiError('sandbox_unavailable', "The agent's tools want bun or node in the sandbox, and neither is there.")
}

/** Another turn may be reading it. */
async function writeWhole(environment: Environment, path: string, body: Uint8Array | ReadableStream<Uint8Array>) {
  const draft = `${path}.${crypto.randomUUID()}`
  await environment.files.write(draft, body)
  await environment.files.rename(draft, path)
}
