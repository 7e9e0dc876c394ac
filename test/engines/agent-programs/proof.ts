import { beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { packProgram } from '../../support/agent-sandbox.ts'
import { geminiSetup, metadataIn, modelSetups, type Place, useAgentServer } from '../../support/agent-server.ts'
import { bundleAgent, deployEvents, deployForm } from '../../support/bundle.ts'
import { processesNamed } from '../../support/leftovers.ts'
import type { ModelTurn } from '../../support/model-server.ts'
import { command, type ServerOptions, temporaryDirectory } from '../../support/server.ts'
import { eventsOf, textIn } from '../../support/sse.ts'
import { playTo, programs } from './programs.ts'

/** A cold start may take many seconds on a busy machine: the test's own time is the bound. */
async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await Bun.sleep(10)
}

const file = '/home/user/primes.py'
const source = (limit: number) => `print(sum(n for n in range(2, ${limit}) if all(n % d for d in range(2, n))))\n`

/** A real program in a sandbox of the built server: all that a user sees of it. */
export function describeProof(name: string, rounds: number, options: ServerOptions = {}): void {
  const program = programs[name]
  const setup = program?.model ? geminiSetup : modelSetups.find(({ wire }) => wire === program?.wire)
  if (!program || !setup) throw new Error(`${name} is none of ${Object.keys(programs).join(', ')}`)
  const { shell, write, read, edit } = program

  describe(`${name}, in the server`, () => {
    const { server, model, modelKey, chat, said, threadOf } = useAgentServer([setup], options)
    let sandboxId = ''
    let place: Place

    const inside = async (line: string): Promise<string> => (await server.exec(sandboxId, line)).stdout
    /** The shell that looks must not find itself. */
    const pattern = program.process.replace(/^./, '[$&]')
    const pids = async () => (await inside(`pgrep -fo '${pattern}'`)).trim().split('\n').filter(Boolean)
    const usage = async () => (await server.ask('GET', '/v1/usage')).body.total
    const ask = (text: string, where: object = place) => said(text, where, name)

    /** Has the agent be what this program's engine needs; what was deployed of it stays. */
    async function define(slug: string, more: object = {}): Promise<void> {
      const directory = temporaryDirectory()
      const agent = {
        slug,
        engine: program?.plugin.name,
        model: setup?.model,
        options: { ...program?.options, ...more },
      }
      await Bun.write(join(directory, 'agent.json'), JSON.stringify(agent))
      const applied = await command(['agents', 'apply', directory, '--data-dir', server.dataDirectory])
      rmSync(directory, { recursive: true })
      expect([applied.code, applied.stderr]).toEqual([0, ''])
    }
    /** A sandbox of the agent with the program in it. */
    async function bring(slug: string): Promise<string> {
      const id = await server.sandbox({ agent: slug })
      const { body, link } = packProgram(name)
      const path = `/v1/sandboxes/${id}/files?path=/opt/program.tar&format=stream`
      expect((await server.request('POST', path, { body })).status).toBeLessThan(300)
      await server.exec(id, `cd /opt && tar -xf program.tar && rm program.tar && ${link}`)
      return id
    }

    beforeAll(async () => {
      await define(name)
      sandboxId = await bring(name)
    }, 120_000)

    test('writes a program, runs it, reads it, edits it and runs it again', async () => {
      playTo(
        model,
        { text: 'I write it. ', calls: [write(file, source(20))] },
        { calls: [shell(`python3 ${file}`)] },
        ({ results }) => ({ text: `It prints ${results[0]?.match(/\b77\b/)}. `, calls: [read(file)] }),
        ({ results }) => ({
          calls: [edit(file, 'range(2, 20)', results[0]?.includes('range(2, 20)') ? 'range(2, 100)' : 'no')],
        }),
        { calls: [shell(`python3 ${file}`)] },
        ({ results }) => ({ text: `Now it prints ${results[0]?.match(/\b1060\b/)}.` }),
      )
      const begun = performance.now()
      const { chunks, ...ids } = await ask('Sum the primes below 100.', { sandboxId })
      console.log(`${name}: the first turn took ${Math.round(performance.now() - begun)} ms`)
      place = { sandboxId, threadId: ids.threadId }
      expect(textIn(chunks)).toBe('I write it. It prints 77. Now it prints 1060.')
      const calls = chunks.filter(({ type }) => type === 'tool-input-available')
      expect(calls).toHaveLength(5)
      expect(chunks.filter(({ type }) => type === 'tool-output-available')).toHaveLength(5)
      expect(await inside(`cat ${file}`)).toBe(source(100))
    })

    test('tells what it used as the gateway counts it', async () => {
      const { messages } = await threadOf(place)
      const { inputTokens, outputTokens, totalCostUsd } = messages.at(-1).metadata
      const total = await usage()
      expect(total).toMatchObject({ calls: model.requests.length, inputTokens, outputTokens, costUsd: totalCostUsd })
      expect([inputTokens, outputTokens]).toEqual([150 * total.calls, 25 * total.calls])
    })

    test('answers the second turn by the process of the first', async () => {
      const before = await pids()
      expect(before).not.toEqual([])
      playTo(model, ({ body }) => ({ text: `I recall: ${JSON.stringify(body).includes('It prints 77')}.` }))
      const begun = performance.now()
      const { chunks } = await ask('Which one was it?')
      console.log(`${name}: the second turn took ${Math.round(performance.now() - begun)} ms`)
      expect([textIn(chunks), await pids()]).toEqual(['I recall: true.', before])
    })

    const waitForPerson = async (): Promise<void> => {
      const slug = `${name}-asks`
      await define(slug, { approvals: 'on', permissionMode: 'default' })
      const id = await bring(slug)
      const line = 'echo ran >> /home/user/ran; cat /home/user/ran'
      const call = (program.askingShell ?? shell)(line)
      playTo(model, { text: 'May I? ', calls: [call] }, ({ results }) => ({
        text: `It says ${results.join().match(/ran/)}.`,
      }))
      const { chunks, ...at } = await said('Go.', { sandboxId: id }, slug)
      expect(textIn(chunks)).toBe('May I? ')
      expect((await threadOf(at)).status).toBe('waiting')
      const { body } = await server.ask('GET', '/v1/approvals?status=pending')
      expect(body.approvals).toHaveLength(1)
      expect((await server.exec(id, 'cat /home/user/ran 2>/dev/null')).stdout).toBe('')
      const answer = await server.ask('POST', `/v1/approvals/${body.approvals[0].id}`, { approved: true })
      expect([answer.status, answer.body.status]).toEqual([200, 'approved'])
      await until(
        async () => (await threadOf(at)).status !== 'waiting' && (await threadOf(at)).messages[1].parts.length > 2,
      )
      const { messages } = await threadOf(at)
      expect(messages).toHaveLength(2)
      const { parts } = messages[1]
      expect(parts.filter(({ type }: any) => type === 'tool-Bash')).toMatchObject([{ state: 'output-available' }])
      expect(parts.at(-1).text).toBe('It says ran.')
      expect((await server.exec(id, 'cat /home/user/ran')).stdout).toBe('ran\n')
    }
    if (program.asks) {
      test('waits for a person, and makes the call once it is approved', waitForPerson, 60_000)
    }

    test('calls the agent’s own tools; one that throws and one that hangs fail alone', async () => {
      const slug = `${name}-tools`
      await define(slug)
      const form = deployForm({ slug, bundle: await bundleAgent('adder.ts'), engine: program.plugin.name })
      const events = await deployEvents(await server.request('POST', '/v1/agents/deploy', { body: form }))
      expect(events.at(-1).type).toBe('result')
      for (const [key, value] of [
        ['GREETING', 'hello'],
        ['THREADBOX_TOOL_TIMEOUT_MS', '1000'],
      ]) {
        await server.ask('PUT', `/v1/agents/${slug}/env`, { key, value })
      }
      const { own: ownCall = (tool: string, input: object) => ({ name: `mcp__user-tools__${tool}`, input }) } = program
      const own = (tool: string, input: object = {}) => ({ calls: [ownCall(tool, input)] })
      const id = await bring(slug)
      playTo(model, own('add', { a: 2 }), own('fail'), own('hang'), own('add', { a: 4 }), { text: 'Done.' })
      const { chunks } = await said('Go.', { sandboxId: id }, slug)
      const outcomes = chunks.filter(({ type }) => type.startsWith('tool-output'))
      const called = chunks.filter(({ type }) => type === 'tool-input-available').map(({ toolName }) => toolName)
      expect(called).toEqual(['add', 'fail', 'hang', 'add'].map(tool => `mcp__user-tools__${tool}`))
      expect(outcomes.map(({ output, errorText }) => errorText ?? JSON.stringify(output))).toEqual([
        expect.stringContaining('3 hello'),
        expect.stringContaining('it broke'),
        expect.stringContaining('hang did not end within 1000 ms'),
        expect.stringContaining('5 hello'),
      ])
    })

    test('ends at its budget, and what it did is kept', async () => {
      const step = { text: 'One more. ', calls: [shell('echo more')] }
      playTo(model, step, step, step, step, step, step)
      const { chunks } = await ask('Go on for ever.', { ...place, options: { maxBudgetUsd: 0.0001 } })
      expect(chunks.at(-2).errorText).toStartWith('budget_exceeded: The run has spent')
      expect(textIn(chunks)).toStartWith('One more. ')
    })

    test('the real key is in no file, environment or command line inside', async () => {
      const [first, second] = [modelKey.slice(-24, -12), modelKey.slice(-12)]
      await inside(`printf '%s%s' ${first} ${second} > /tmp/planted`)
      const files = `printf '%s%s' ${first} ${second} | grep -rlaF --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr -f - / /usr/local 2>/dev/null`
      expect(await inside(files)).toBe('/tmp/planted\n')
      await inside('rm /tmp/planted')
      const seen = await inside('cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline')
      expect([seen.includes('tbp_'), seen.includes(second)]).toEqual([true, false])
      expect(model.requests.filter(({ headers }) => JSON.stringify([...headers]).includes('tbp_'))).toEqual([])
    })

    /** Cancels when it is time. What the chat streamed, and how long the cancel took. */
    async function cancelled(
      turn: ModelTurn,
      isTime: (chunk: any) => boolean,
      when?: () => boolean | Promise<boolean>,
    ) {
      playTo(model, turn)
      const { response } = await chat('Go.', place, name)
      const chunks: any[] = []
      let cancelling: Promise<unknown> | undefined
      let tookMs = 0
      const cancel = () => {
        cancelling ??= (async () => {
          const begun = performance.now()
          const { body } = await server.ask('DELETE', `/v1/chat/${name}/${sandboxId}/stream`)
          tookMs = performance.now() - begun
          expect(body.status).toBe('cancelled')
        })()
      }
      const waiting = when && until(when).then(cancel)
      for await (const { data } of eventsOf(response)) {
        chunks.push(data)
        if (isTime(data)) cancel()
      }
      await waiting
      await cancelling
      return { chunks, tookMs }
    }

    const scenes: [string, (nap: string) => ReturnType<typeof cancelled>][] = [
      ['in a text', () => cancelled({ text: 'word '.repeat(400), everyMs: 20 }, ({ type }) => type === 'text-delta')],
      [
        'in a tool',
        nap =>
          cancelled(
            { text: 'Now. ', calls: [shell(`setsid sleep ${nap} & nohup sleep ${nap} & sleep ${nap}`)] },
            () => false,
            () => processesNamed(nap).length === 3,
          ),
      ],
      [
        'while it waits',
        () =>
          cancelled(
            { silent: true },
            () => false,
            () => model.openCalls > 0,
          ),
      ],
    ]
    test.each(scenes)(
      `cancelled ${rounds} times %s, nothing of it is alive`,
      async (_, run) => {
        const took: number[] = []
        for (let round = 0; round < rounds; round++) {
          const nap = `59${round}.${server.pid}`
          const { chunks, tookMs } = await run(nap)
          took.push(Math.round(tookMs))
          expect(processesNamed(nap)).toEqual([])
          expect(chunks.slice(-3).map(({ type }) => type ?? 'done')).toEqual(['abort', 'finish', 'done'])
          await until(() => model.openCalls === 0)
        }
        console.log(`${name}: cancels took ${took.join(', ')} ms`)
        playTo(model, ({ body }) => ({ text: `I recall: ${JSON.stringify(body).includes('It prints 77')}.` }))
        expect(textIn((await ask('Still there?')).chunks)).toBe('I recall: true.')
      },
      60_000 + rounds * 20_000,
    )

    test('killed in a turn, the server goes on with the memory of it', async () => {
      const nap = `60.${server.pid}`
      playTo(model, { text: 'First this. ', calls: [shell(`setsid sleep ${nap} & sleep ${nap}`)] })
      const { response } = await chat('Remember the word plover.', place, name)
      const reading = Array.fromAsync(eventsOf(response)).catch(() => {})
      await until(() => processesNamed(nap).length === 2)
      await server.kill()
      await reading
      await server.start()
      await until(() => processesNamed(nap).length === 0)
      expect(await pids()).toEqual([])
      playTo(model, ({ body }) => {
        const text = JSON.stringify(body)
        return { text: `${text.includes('plover')}, ${text.includes('It prints 77')}` }
      })
      const { chunks } = await ask('And now?')
      expect(textIn(chunks)).toBe('true, true')
      expect(metadataIn(chunks).inputTokens).toBeGreaterThan(0)
    })
  })
}
