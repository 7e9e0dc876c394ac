import { beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bash, metadataIn, modelSetups, type Place, useAgentServer } from '../support/agent-server.ts'
import { readText } from '../support/leftovers.ts'
import { textIn } from '../support/sse.ts'
import { finalText, playProgram } from './program.ts'

const { server, model, modelKey, said, threadOf } = useAgentServer(modelSetups, { flags: ['--disk-mb', '256'] })
/** A part of the key is as bad as all of it. */
const needle = modelKey.slice(-24)
/** What a run's token looks like. */
const aToken = /tbr_[\w-]{20,}/

/** All that went over HTTP to clients. */
const answers: string[] = []
let place: Place

/** Its own words never have the key whole: a search must not find itself. */
const search = (command: string) => `printf '%s%s' ${needle.slice(0, 9)} ${needle.slice(9)} | ${command}`

async function ask(method: string, path: string, body?: unknown): Promise<any> {
  const answer = await server.ask(method, path, body)
  answers.push(JSON.stringify([...answer.headers]), JSON.stringify(answer.body))
  return answer.body
}

const shell = async (command: string): Promise<string> =>
  (await ask('POST', `/v1/sandboxes/${place.sandboxId}/exec`, { command })).stdout

beforeAll(async () => {
  for (const { model: name } of modelSetups) {
    playProgram(model)
    const { chunks, ...ids } = await said('Sum the primes below 100.', { options: { model: name }, ...place })
    expect([textIn(chunks), metadataIn(chunks).model]).toEqual([finalText, name])
    place = { sandboxId: ids.sandboxId, threadId: ids.threadId }
    answers.push(JSON.stringify(chunks))
  }
  // What every process of the sandbox has, seen by the agent itself while it runs, and a background process of it.
  model.play(
    {
      calls: [
        bash('sleep 4812', { run_in_background: true }),
        bash('env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline'),
      ],
    },
    ({ results }) => ({ text: results.join('') }),
  )
  const looked = await said('Look around.', place)
  expect(textIn(looked.chunks)).toContain('HTTP_PROXY=')
  answers.push(JSON.stringify(looked.chunks))
  const { sandboxId, threadId } = place
  for (const path of ['/sandboxes', `/sandboxes/${sandboxId}`, `/sandboxes/${sandboxId}/threads/${threadId}`, '/usage'])
    await ask('GET', `/v1${path}`)
  answers.push(JSON.stringify(await threadOf(place)), await (await server.request('GET', '/health')).text())
}, 60_000)

describe('a provider that repeats the key', () => {
  const message = `Incorrect API key provided: ${modelKey}`
  const errors = [
    { name: 'in a refusal', turn: { status: 401, message } },
    { name: 'in an error event of its stream', turn: { brokenStream: true as const, message } },
  ]
  const cases = errors.flatMap(each => modelSetups.map(setup => ({ ...each, ...setup })))
  test.each(cases)('$name on $wire tells it to nobody', async ({ turn, model: name }) => {
    model.play(turn)
    const { chunks } = await said('Fail.', { ...place, options: { model: name } })
    expect(JSON.stringify(chunks)).toContain('Incorrect API key provided')
    expect(JSON.stringify(chunks)).not.toContain(needle)
    expect(server.stderr).not.toContain(needle)
    expect(JSON.stringify(await threadOf(place))).not.toContain(needle)
  })
})

describe('after a full run on every wire, the real key', () => {
  test('reached the providers, so that it is this key that is looked for', () => {
    const sent = model.requests.map(({ headers }) => headers.get('x-api-key') ?? headers.get('authorization') ?? '')
    expect(sent.length).toBeGreaterThan(18)
    expect(sent.filter(value => !value.endsWith(needle))).toEqual([])
  })

  test('is in no file of the sandbox', async () => {
    // /usr is the host's own, and cannot be written but for /usr/local.
    expect(await shell('touch /usr/x 2>&1; true')).toContain('Read-only')
    // The search finds what is there. In memory: the image of the disk would keep it, once written, after it is removed.
    await shell(`printf '%s%s' ${needle.slice(0, 9)} ${needle.slice(9)} > /dev/shm/planted`)
    const found = search(
      `grep -rlaF --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr -f - / /usr/local 2>/dev/null`,
    )
    expect(await shell(found)).toBe('/dev/shm/planted\n')
    await shell('rm /dev/shm/planted')
  })

  test('is in no environment and no command line inside', async () => {
    const inside = await shell(`cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; env`)
    expect(inside).toContain('HTTP_PROXY')
    expect(inside).not.toContain(needle)
  })

  test('is nowhere below the data directory: sandboxes, database, its log', async () => {
    const { stdout } = Bun.spawnSync(['grep', '-rlaF', needle, server.dataDirectory])
    expect(stdout.toString()).toBe('')
    const files = readdirSync(server.dataDirectory).filter(name => name.startsWith('threadbox.db'))
    expect(files).toContain('threadbox.db-wal')
    for (const name of files) {
      const bytes = readFileSync(join(server.dataDirectory, name)).toString('latin1')
      expect([name, bytes.includes(needle), aToken.test(bytes)]).toEqual([name, false, false])
    }
  })

  test('is in no line of the log, no stream and no answer', () => {
    const log = server.stdout + server.stderr
    expect(log).toContain('threadbox listening')
    expect([log.includes(needle), aToken.test(log)]).toEqual([false, false])
    expect(answers.filter(text => text.includes(needle) || aToken.test(text))).toEqual([])
    expect(JSON.stringify(answers)).toContain('1060')
  })

  test('is in the environment of the server and in no command line of the host', () => {
    expect(readText(`/proc/${server.pid}/environ`)).toContain(modelKey)
    expect(readText(`/proc/${server.pid}/cmdline`)).not.toContain(needle)
    const pids = readdirSync('/proc').filter(
      name => /^\d+$/.test(name) && ![server.pid, process.pid].includes(Number(name)),
    )
    const holders = pids.filter(pid =>
      ['cmdline', 'environ'].some(name => readText(`/proc/${pid}/${name}`).includes(needle)),
    )
    expect(holders).toEqual([])
  })
})

test('a run of the built-in engine gives its sandbox no token', async () => {
  const all = `cat /proc/[0-9]*/environ; grep -rhaoE 'tbr_[A-Za-z0-9_-]{20,}' /home /tmp /etc /root /var 2>/dev/null`
  model.play({ calls: [bash(all)] }, ({ results }) => ({ text: results.join('') }))
  const text = textIn((await said('Look for a token.', place)).chunks)
  expect(text).toContain('PATH=')
  expect(text).not.toMatch(aToken)
})
