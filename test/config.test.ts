import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError } from '../src/core/config.ts'
import { defaultLimits } from '../src/core/limits/parse.ts'
import { readConfig } from '../src/start/config.ts'
import { settings } from '../src/start/settings.ts'

const directory = mkdtempSync(join(tmpdir(), 'threadbox-config-'))
afterAll(() => rmSync(directory, { recursive: true }))

async function file(content: unknown): Promise<string> {
  const path = join(directory, `${crypto.randomUUID()}.json`)
  await Bun.write(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

const problemsOf = (flags: string[], environment: NodeJS.ProcessEnv = {}): Promise<readonly string[]> =>
  readConfig(flags, environment).then(
    () => [],
    error => {
      expect(error).toBeInstanceOf(ConfigError)
      return error.problems
    },
  )

test('defaults are complete', async () => {
  expect(await readConfig([], {})).toEqual({
    shown: expect.any(Array),
    backend: 'nsjail',
    backends: ['nsjail'],
    host: '127.0.0.1',
    port: 7070,
    dataDirectory: expect.stringMatching(/^\/.*\/threadbox$/),
    limits: { memoryMb: 2048, processes: 512, cpus: 2, diskMb: 10_240 },
    durability: 'normal',
    walCheckpoint: 'own',
    graceMs: 3000,
    idleMs: 3_600_000,
    spares: 1,
    runtimes: {},
    log: 'text',
    logLevel: 'info',
    auditDays: 90,
    auditCommands: false,
    watchdogMs: 30_000,
    requestsPerKey: 512,
    network: 'public',
    networkPrivate: [],
    webhookPrivate: [],
    trustedProxies: [],
    callerLimits: defaultLimits(),
    dockerImage: 'debian:12-slim',
    dockerRuntimes: [],
    e2bTemplate: 'base',
    plugins: [],
    models: { providers: {}, prices: {}, budgets: { threadUsd: 0, keyDayUsd: 0, dayUsd: 0 } },
  })
})

describe('strength', () => {
  test('flags over environment over file over defaults', async () => {
    const path = await file({ port: 1, host: 'file', 'grace-ms': 10, processes: 70 })
    const environment = { THREADBOX_PORT: '2', THREADBOX_HOST: 'environment', THREADBOX_CONFIG: path }
    const config = await readConfig(['--port', '3'], environment)
    expect(config).toMatchObject({ port: 3, host: 'environment', graceMs: 10, idleMs: 3_600_000 })
    expect(config.limits).toEqual({ memoryMb: 2048, processes: 70, cpus: 2, diskMb: 10_240 })
  })

  test('the file that a flag names over the one that the environment names', async () => {
    const [a, b] = [await file({ port: 1 }), await file({ port: 2 })]
    expect((await readConfig(['--config', a], { THREADBOX_CONFIG: b })).port).toBe(1)
  })

  test('of a flag given twice the last', async () => {
    expect((await readConfig(['--port', '1', '--port=2'], {})).port).toBe(2)
  })
})

test('plugins may be named one by one, also in a flag each', async () => {
  const flags = ['--plugin', '/a.ts', '--plugin=/b.ts,/c.ts']
  expect((await readConfig(flags, { THREADBOX_PLUGIN: '/d.ts' })).plugins).toEqual(['/a.ts', '/b.ts', '/c.ts'])
})

test('a default backend that is named comes before those that are listed', async () => {
  const read = async (...flags: string[]) => (await readConfig(flags, { THREADBOX_BACKENDS: 'nsjail,docker' })).backends
  expect(await read('--backend', 'docker')).toEqual(['docker', 'nsjail'])
  expect(await read('--backend', 'e2b')).toEqual(['e2b', 'nsjail', 'docker'])
})

describe('every setting', () => {
  const values: Record<string, [string, object]> = {
    backend: ['other', { backend: 'other', backends: ['other'] }],
    backends: ['docker, nsjail', { backend: 'docker', backends: ['docker', 'nsjail'] }],
    host: ['0.0.0.0', { host: '0.0.0.0' }],
    port: ['0', { port: 0 }],
    'data-dir': ['/data', { dataDirectory: '/data' }],
    agents: ['/agents', { agentsDirectory: '/agents' }],
    durability: ['full', { durability: 'full' }],
    'wal-checkpoint': ['external', { walCheckpoint: 'external' }],
    'nsjail-path': ['/opt/nsjail', { nsjailPath: '/opt/nsjail' }],
    'docker-image': ['node:22', { dockerImage: 'node:22' }],
    'docker-runtime': ['runsc, runc', { dockerRuntimes: ['runsc', 'runc'] }],
    'e2b-template': ['code-interpreter-v1', { e2bTemplate: 'code-interpreter-v1' }],
    'preview-domain': ['Box.example:7070', { previewDomain: 'box.example:7070' }],
    'public-url': ['https://box.example', { publicUrl: 'https://box.example' }],
    plugin: ['/a.ts, /b.ts', { plugins: ['/a.ts', '/b.ts'] }],
    'api-key': ['0123456789abcdef', { apiKey: '0123456789abcdef' }],
    origins: ['https://a.example, http://localhost:3000', { origins: ['https://a.example', 'http://localhost:3000'] }],
    'memory-mb': ['512', { limits: { memoryMb: 512 } }],
    processes: ['0', { limits: { processes: 0 } }],
    cpus: ['0.5', { limits: { cpus: 0.5 } }],
    'reserve-mb': ['100', { reserveMb: 100 }],
    'disk-mb': ['100', { limits: { diskMb: 100 } }],
    'grace-ms': ['0', { graceMs: 0 }],
    'idle-ms': ['60000', { idleMs: 60_000 }],
    spares: ['32', { spares: 32 }],
    'watchdog-ms': ['0', { watchdogMs: 0 }],
    'requests-per-key': ['60000', { requestsPerKey: 60_000 }],
    'metrics-address': ['[::1]:9464', { metricsAddress: { host: '::1', port: 9464 } }],
    log: ['json', { log: 'json' }],
    'audit-days': ['365', { auditDays: 365 }],
    'audit-file': ['/var/log/audit.jsonl', { auditFile: '/var/log/audit.jsonl' }],
    'audit-commands': ['yes', { auditCommands: true }],
    'log-level': ['debug', { logLevel: 'debug' }],
    runtime: ['claude-code=ai-sdk, codex=acp', { runtimes: { 'claude-code': 'ai-sdk', codex: 'acp' } }],
    network: ['none', { network: 'none' }],
    'network-private': ['10.0.0.0/8', { networkPrivate: [{}] }],
    'tls-cert': ['/c', { tls: { certFile: '/c', keyFile: '/key' } }],
    'tls-key': ['/k', { tls: { certFile: '/cert', keyFile: '/k' } }],
    'webhook-private': ['10.0.0.0/8', { webhookPrivate: [{}] }],
    limit: [
      'key.requests=5/s, runs=2',
      { callerLimits: { 'key.requests': { count: 5, periodMs: 1000 }, 'key.runs': { count: 2, periodMs: 0 } } },
    ],
    'trusted-proxies': [
      '10.0.0.0/8, ::ffff:192.168.0.0/112',
      {
        trustedProxies: [
          { version: 4, bits: 8 },
          { version: 4, value: 0xc0a80000n, bits: 16 },
        ],
      },
    ],
    'backup-every': ['6h', { backups: { everyMs: 21_600_000 } }],
    'backup-to': ['s3://bucket/all', { backups: { to: 's3://bucket/all' } }],
    'backup-keep': ['7', { backups: { keep: 7 } }],
    'backup-keep-days': ['30', { backups: { keepDays: 30 } }],
    'backup-recipient': ['age1xyz, age1abc', { backups: { recipients: ['age1xyz', 'age1abc'] } }],
    'backup-passphrase-file': ['/secret', { backups: { passphraseFile: '/secret' } }],
    model: ['openai/gpt-5.2', { models: { model: 'openai/gpt-5.2' } }],
    'model-url': ['http://127.0.0.1:11434/v1', { models: { modelUrl: 'http://127.0.0.1:11434/v1' } }],
    'model-key': ['secret-key-0123', { models: { modelKey: 'secret-key-0123' } }],
    'model-window': ['32000', { models: { modelWindow: 32_000 } }],
    'thread-budget-usd': ['1.5', { models: { budgets: { threadUsd: 1.5 } } }],
    'key-day-budget-usd': ['2', { models: { budgets: { keyDayUsd: 2 } } }],
    'day-budget-usd': ['3', { models: { budgets: { dayUsd: 3 } } }],
    prices: ['{"m":{"input":1,"output":2}}', { models: { prices: { m: { input: 1, output: 2 } } } }],
    providers: [
      '{"local":{"wire":"openai-chat","baseUrl":"http://127.0.0.1:9/v1"}}',
      { models: { providers: { local: { wire: 'openai-chat', baseUrl: 'http://127.0.0.1:9/v1' } } } },
    ],
  }
  // A URL of a model's provider wants a model, backups want a time and a place, a certificate its key.
  const backups = { THREADBOX_BACKUP_EVERY: '1d', THREADBOX_BACKUP_TO: '/elsewhere' }
  const tls = { THREADBOX_TLS_CERT: '/cert', THREADBOX_TLS_KEY: '/key' }
  const around: NodeJS.ProcessEnv = { THREADBOX_MODEL: 'openai/gpt-5.2', ...backups, ...tls }
  for (const { name } of settings.filter(setting => setting.name !== 'config')) {
    test(`${name} as a flag, in the environment and in the file`, async () => {
      const [value, expected] = values[name]!
      const variable = `THREADBOX_${name.toUpperCase().replaceAll('-', '_')}`
      const given = await Promise.all([
        readConfig([`--${name}`, value], around),
        readConfig([`--${name}=${value}`], around),
        readConfig([], { ...around, [variable]: value }),
        readConfig(['--config', await file({ [name]: value })], { ...around, [variable]: undefined }),
      ])
      for (const config of given) expect(config).toMatchObject(expected)
    })
  }

  test('a file may have numbers and lists', async () => {
    const path = await file({ port: 8080, cpus: 1.5, origins: ['https://a.example', 'https://b.example'] })
    const config = await readConfig(['--config', path], {})
    expect(config).toMatchObject({ port: 8080, origins: ['https://a.example', 'https://b.example'] })
    expect(config.limits.cpus).toBe(1.5)
  })

  test('a relative directory is relative to where threadbox was started', async () => {
    expect((await readConfig(['--data-dir', 'here'], {})).dataDirectory).toBe(join(process.cwd(), 'here'))
  })
})

describe('a problem names its setting and not its value', () => {
  const wrong: [string, string[]][] = [
    ['port', ['x', '', '-1', '65536', '1.5', '1e99', ' ']],
    ['memory-mb', ['x', '-1', '1.5', 'NaN', 'Infinity']],
    ['cpus', ['x', '-1', '2000']],
    ['grace-ms', ['-1', '3600001']],
    ['idle-ms', ['soon']],
    ['backup-every', ['0h', '6', 'soon', '-1d']],
    ['backup-recipient', ['', 'AGE-SECRET-KEY-1XYZ']],
    ['spares', ['-1', '1.5', '1025', 'all']],
    ['log-level', ['', 'loud', 'INFO']],
    ['api-key', ['short', 'with spaces in the key']],
    ['origins', ['', '*', 'example.com', 'https://a.example/path', 'https://a.example,']],
    ['host', ['']],
    ['backend', ['']],
    ['backends', ['', 'nsjail,', 'nsjail,docker,nsjail']],
    ['data-dir', ['']],
  ]
  for (const [name, values] of wrong) {
    for (const value of values) {
      test(`${name} ${JSON.stringify(value)}`, async () => {
        const variable = `THREADBOX_${name.toUpperCase().replaceAll('-', '_')}`
        const [flag, inEnvironment, inFile] = await Promise.all([
          problemsOf([`--${name}=${value}`]),
          problemsOf([], { [variable]: value }),
          problemsOf(['--config', await file({ [name]: value })]),
        ])
        expect(flag).toHaveLength(1)
        expect(flag[0]).toStartWith(`--${name}: `)
        expect(inEnvironment).toHaveLength(1)
        expect(inEnvironment[0]).toStartWith(`${variable}: `)
        expect(inFile).toHaveLength(1)
        expect(inFile[0]).toStartWith(`"${name}" in `)
        if (name === 'api-key') expect([...flag, ...inEnvironment, ...inFile].join()).not.toContain(value)
      })
    }
  }

  const malformed: [string, string[], RegExp][] = [
    ['an unknown flag', ['--nothing', 'x'], /^--nothing: no such flag$/],
    ['a word that is no flag', ['words'], /^words: not a flag$/],
    ['a single dash', ['-p', '80'], /^-p: not a flag$/],
    ['a flag without its value', ['--port'], /^--port: wants a value$/],
    ['a file that is not there', ['--config', '/no/such.json'], /^config: \/no\/such\.json: /],
  ]
  for (const [name, flags, words] of malformed) {
    test(name, async () => expect((await problemsOf(flags)).some(problem => words.test(problem))).toBe(true))
  }

  for (const content of ['{', '[]', '"x"', 'null', '']) {
    test(`a file that is ${content || 'empty'}`, async () => {
      const problems = await problemsOf(['--config', await file(content)])
      expect(problems).toHaveLength(1)
      expect(problems[0]).toStartWith('config: ')
    })
  }

  test('an unknown setting in the file', async () => {
    const problems = await problemsOf(['--config', await file({ prot: 1 })])
    expect(problems).toEqual([expect.stringMatching(/^"prot" in .*: no such setting; did you mean port\?$/)])
  })
})

test('every problem is told at once', async () => {
  const path = await file({ cpus: 'many', nonsense: 1 })
  const problems = await problemsOf(['--port', 'x', '--nothing=1', '--config', path], {
    THREADBOX_MEMORY_MB: 'x',
    THREADBOX_API_KEY: 'short',
  })
  expect(problems.map(problem => problem.split(/[ :]/)[0]).sort()).toEqual(
    ['"cpus"', '"nonsense"', '--nothing', '--port', 'THREADBOX_API_KEY', 'THREADBOX_MEMORY_MB'].sort(),
  )
  const error = await readConfig(['--port', 'x', '--host='], {}).catch(each => each)
  expect(error.message).toBe(error.problems.join('\n'))
})
