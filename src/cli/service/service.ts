import { existsSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { newApiKey } from '../../core/access/keys.ts'
import { type Config, ConfigError } from '../../core/config.ts'
import { messageOf } from '../../errors.ts'
import { keyNamesOf } from '../../gateway/providers.ts'
import { readConfig, readFlags } from '../../start/config.ts'
import { loadPlugins } from '../../start/load-plugins.ts'
import { settings } from '../../start/settings.ts'
import type { Given } from '../command-line.ts'
import { createProgress } from '../progress.ts'
import { hasVariable, parseVariables, withVariables } from './environment-file.ts'
import { installExecutable, installText, readText } from './install-file.ts'
import { assertModelIn, assertStarts } from './preflight.ts'
import { findLastError, hasFailed, systemctl } from './systemd.ts'
import { isRemote, STATE_DIRECTORY, unitText } from './unit.ts'

const UNIT = '/etc/systemd/system/threadbox.service'
const UNIT_OF_PACKAGE = '/usr/lib/systemd/system/threadbox.service'
const ENVIRONMENT = '/etc/threadbox/environment'
/** The executable of a Debian package stays where the package has put it. */
const isPackaged = process.execPath === '/usr/bin/threadbox'
const EXECUTABLE = isPackaged ? process.execPath : '/usr/local/bin/threadbox'

/** How long the first start may take: it runs the backend's checks. */
const STARTED_WITHIN_MS = 20_000
const ANSWERED_WITHIN_MS = 3000
const POLL_MS = 100

/** Where to install. With another root, an image is being made and nothing is started. */
interface Target {
  root: string
  isLive: boolean
}

/** Installs, removes or shows the server as a service of systemd. False when `status` finds that it does not run. */
export async function service(given: Given): Promise<boolean> {
  const { action, settings } = given
  const root = given.find('root')
  const target: Target = { root: resolve(root ?? '/'), isLive: root === undefined }
  if (action === 'status') return await showStatus(target)
  const isPrint = action === 'install' && given.has('print')
  if (target.isLive && !isPrint) assertSystemd()
  if (action === 'remove') await remove(target)
  else {
    const user = given.find('user')
    await install(target, { settings, isPrint, ...(user !== undefined && { user }) })
  }
  return true
}

function assertSystemd(): void {
  if (process.getuid?.() !== 0) throw new Error('service: only root may do that')
  if (!systemctl('is-system-running').output)
    throw new Error('service: systemd does not run here; see --print and --root')
}

async function install(
  target: Target,
  options: { settings: readonly string[]; isPrint: boolean; user?: string },
): Promise<void> {
  const { isPrint, user } = options
  const environmentFile = join(target.root, ENVIRONMENT)
  const before = await readText(environmentFile)
  const variables = toVariables(options.settings)
  // Otherwise the first start would print a key, which the journal would keep.
  const isNewKey = !hasVariable(before, 'THREADBOX_API_KEY') && !('THREADBOX_API_KEY' in variables)
  if (isNewKey) variables.THREADBOX_API_KEY = newApiKey()
  const keys = await addModelKey(before, variables)
  const environment = withVariables(before, variables)
  const config = await readServiceConfig(environment)
  const groups = config.backends.includes('docker') && (await hasGroup(target, 'docker')) ? ['docker'] : []
  const unit = unitText({
    ...{ executable: EXECUTABLE, environmentFile: ENVIRONMENT, backends: config.backends, groups },
    dataDirectory: config.dataDirectory,
    ...(user !== undefined && { user }),
  })
  if (isPrint) return console.log(unit.trimEnd())
  assertModelIn(config, parseVariables(environment), ENVIRONMENT)
  const missing = target.isLive ? await assertStarts(config, parseVariables(environment)) : []
  if (missing.length > 0)
    console.log(`the server starts, but not all that is listed has sandboxes yet:\n${missing.join('\n')}`)
  await makeDataDirectory(target, config, user)
  const changes = [
    !isPackaged && (await installExecutable(join(target.root, EXECUTABLE))),
    await installText(environmentFile, environment, 0o600),
    await installText(join(target.root, UNIT), unit, 0o644),
  ]
  for (const name of keys) console.log(`${name}, as it is set for this command, is kept in ${ENVIRONMENT}`)
  if (isNewKey) console.log(`API key, kept in ${ENVIRONMENT}: ${variables.THREADBOX_API_KEY}`)
  systemctl(...rootFlags(target), 'enable', 'threadbox').orThrow()
  if (!target.isLive) return
  systemctl('daemon-reload').orThrow()
  if (changes.some(Boolean)) systemctl('stop', 'threadbox').orThrow()
  systemctl('reset-failed', 'threadbox')
  // Without --no-block, systemctl would wait until the server is ready, however often it fails.
  systemctl('--no-block', 'start', 'threadbox').orThrow()
  const progress = createProgress()
  progress.say('waiting for the server')
  await assertAnswers(toUrl(config)).finally(() => progress.end())
  console.log(`threadbox answers at ${toUrl(config)}. Its log: journalctl -u threadbox`)
}

/** Adds the key of the model's provider when this command has it and the service does not. Returns the names that it added. */
async function addModelKey(before: string | undefined, variables: Record<string, string>): Promise<string[]> {
  const { models } = await readServiceConfig(withVariables(before, variables))
  const names = keyNamesOf(models.model)
  if (names.some(name => hasVariable(before, name))) return []
  const found = names.find(name => process.env[name])
  if (found === undefined) return []
  variables[found] = process.env[found] ?? ''
  return [found]
}

/** Makes a data directory that is not systemd's own: a service may write to another one only when it exists. */
async function makeDataDirectory({ root, isLive }: Target, config: Config, user?: string): Promise<void> {
  const { dataDirectory, backends } = config
  if (dataDirectory === STATE_DIRECTORY) return
  if (isRemote(backends) && user === undefined) throw new ConfigError(['--data-dir: name its owner with --user'])
  await mkdir(join(root, dataDirectory), { recursive: true, mode: 0o700 })
  if (user === undefined || !isLive) return
  const { exitCode, stderr } = Bun.spawnSync(['chown', `${user}:`, dataDirectory], { stderr: 'pipe' })
  if (exitCode !== 0) throw new Error(`--user: ${stderr.toString().trim()}`)
}

/** Waits until the server answers. Throws with its last log line when it has ended or does not answer in time. */
async function assertAnswers(url: string): Promise<void> {
  const deadline = Date.now() + STARTED_WITHIN_MS
  let why = 'does not answer'
  while (!(await answers(url))) {
    const isOver = hasFailed()
    if (isOver) why = 'does not start'
    if (isOver || Date.now() > deadline) {
      const words = findLastError()
      throw new Error(`service: the server ${why}${words && `: ${words}`}\nsee: journalctl -u threadbox`)
    }
    await Bun.sleep(POLL_MS)
  }
}

/** The certificate is not checked, because the request has no secret, and only the fact of an answer counts. */
const answers = (url: string): Promise<boolean> =>
  fetch(`${url}/health`, { tls: { rejectUnauthorized: false }, signal: AbortSignal.timeout(ANSWERED_WITHIN_MS) }).then(
    ({ ok }) => ok,
    () => false,
  )

const toUrl = ({ host, port, tls }: Config) =>
  `http${tls ? 's' : ''}://${host.includes(':') ? `[${host}]` : host}:${port}`

async function remove(target: Target): Promise<void> {
  const text = await readText(join(target.root, ENVIRONMENT))
  if (target.isLive) {
    systemctl('disable', '--now', 'threadbox')
    await readServiceConfig(text ?? '')
      .then(config => pauseAll(config))
      .catch(error => console.error(`threadbox: sandboxes may still run: ${messageOf(error)}`))
  } else systemctl(...rootFlags(target), 'disable', 'threadbox')
  for (const path of isPackaged ? [UNIT] : [UNIT, EXECUTABLE]) await rm(join(target.root, path), { force: true })
  if (target.isLive) systemctl('daemon-reload')
  console.log(`${isPackaged ? 'The service' : 'threadbox'} is removed. Its data and ${ENVIRONMENT} stay.`)
}

/** Pauses all sandboxes: they outlive the server, and nothing would stop them once it is removed. */
async function pauseAll(config: Config): Promise<void> {
  const { dataDirectory } = config
  if (!existsSync(dataDirectory)) return
  const { backends } = await loadPlugins(config)
  for (const name of config.backends) {
    const backend = backends.get(name)
    for (const id of (await backend?.list()) ?? []) await (await backend?.open(id))?.pause?.()
    await backend?.close()
  }
}

async function showStatus(target: Target): Promise<boolean> {
  const unit = [UNIT, UNIT_OF_PACKAGE].find(path => existsSync(join(target.root, path)))
  console.log(`unit        ${unit ?? 'not installed'}`)
  const environment = await readText(join(target.root, ENVIRONMENT)).catch(() => undefined)
  if (environment !== undefined) console.log(`settings    ${ENVIRONMENT}`)
  console.log(`enabled     ${systemctl(...rootFlags(target), 'is-enabled', 'threadbox').output || 'unknown'}`)
  if (!target.isLive) return unit !== undefined
  const active = systemctl('is-active', 'threadbox').output || 'unknown'
  console.log(`running     ${active}`)
  if (environment === undefined || active !== 'active') return active === 'active'
  const url = toUrl(await readServiceConfig(environment))
  const isThere = await answers(url)
  console.log(`server      ${isThere ? 'answers at' : 'does not answer at'} ${url}`)
  return isThere
}

/** Reads the settings that the service will have. */
const readServiceConfig = (environment: string): Promise<Config> =>
  readConfig([], { THREADBOX_DATA_DIR: STATE_DIRECTORY, ...parseVariables(environment) })

/** Turns flags into environment variables, with absolute paths. */
function toVariables(flags: readonly string[]): Record<string, string> {
  const problems: string[] = []
  const given = readFlags(flags, problems)
  const variables: Record<string, string> = {}
  for (const [name, text] of given) {
    const setting = settings.find(each => each.name === name)
    const isPath = ['FILE', 'FILES', 'DIR'].includes(setting?.value ?? '')
    const paths = () => text.split(',').map(path => resolve(path.trim()))
    variables[`THREADBOX_${name.toUpperCase().replaceAll('-', '_')}`] = isPath ? paths().join(',') : text
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return variables
}

async function hasGroup(target: Target, name: string): Promise<boolean> {
  const groups = await readText(join(target.root, '/etc/group'))
  return groups?.split('\n').some(line => line.startsWith(`${name}:`)) ?? false
}

const rootFlags = ({ root, isLive }: Target): string[] => (isLive ? [] : [`--root=${root}`])
