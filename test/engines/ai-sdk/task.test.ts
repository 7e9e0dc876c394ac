import { describe, expect, test } from 'bun:test'
import { bytesInUse } from '../../support/memory.ts'
import { allWires } from '../../support/model-server.ts'
import { bash, codesOf, openStage } from './stage.ts'

const { model, play, put, shell, system } = openStage()

describe('a task', () => {
  test('is written, run, read, changed and run again', async () => {
    const file_path = '/home/user/sum.py'
    model.play(
      {
        text: 'I write it. ',
        calls: [{ name: 'Write', input: { file_path, content: 'print(1 + 1)\n' } }, bash('python3 sum.py')],
      },
      request => ({
        text: `It prints ${request.results[1]?.trim()}. `,
        calls: [{ name: 'Read', input: { file_path } }],
      }),
      { calls: [{ name: 'Edit', input: { file_path, old_string: '1 + 1', new_string: '40 + 2' } }] },
      { calls: [bash('python3 sum.py')] },
      request => ({ text: `Now ${request.results[0]?.trim()}.` }),
    )
    const { end, text } = await play()
    expect([end.status, text]).toEqual(['completed', 'I write it. It prints 2. Now 42.'])
    expect(await shell('cat sum.py')).toBe('print(40 + 2)\n')
  })

  test.each([...allWires])('runs calls of one answer side by side on %s, their results in order', async wire => {
    // Each waits for the other: one after the other they would never end.
    const meet = (own: string, other: string) =>
      bash(`touch /tmp/${own}; until [ -e /tmp/${other} ]; do sleep 0.01; done; echo ${own}`)
    model.play({ calls: [meet('a', 'b'), meet('b', 'a')] }, ({ results }) => ({ text: results.join('') }))
    expect((await play({ wire })).text).toBe('a\nb\n')
  })

  test('runs what changes a file in its order', async () => {
    const edits = ['b', 'c', 'd'].map((new_string, index) => ({
      name: 'Edit',
      input: { file_path: '/tmp/f', old_string: 'abc'[index], new_string },
    }))
    await shell('printf a > /tmp/f')
    model.play({ calls: [...edits, bash('cat /tmp/f')] }, ({ results }) => ({ text: String(results[3]) }))
    expect((await play()).text).toBe('d')
  })

  test('gives calls ids of their own where the provider uses one again', async () => {
    model.play({ calls: [bash('echo 1', 'call_0')] }, { calls: [bash('echo 2', 'call_0')] }, ({ body }) => ({
      text: body.messages.flatMap(({ tool_call_id }: any) => tool_call_id ?? []).join(),
    }))
    const { text, parts } = await play({ wire: 'openai-chat' })
    expect(text).toBe('call_0,call_0-2')
    expect(parts.flatMap(({ output }) => output ?? [])).toEqual(['1\n', '2\n'])
  })

  test('ends as failed after maxTurns model calls', async () => {
    model.play(...Array.from({ length: 5 }, () => ({ calls: [bash('true')] })))
    const { end, parts } = await play({ options: { maxTurns: 3 } })
    expect(end).toMatchObject({ status: 'failed', error: { code: 'max_turns' } })
    expect([model.requests.length, parts.filter(({ toolCallId }) => toolCallId).length]).toEqual([3, 3])
  })

  test('tells when an answer was cut', async () => {
    model.play({ text: 'Too long', ending: 'length' })
    const { end, events } = await play()
    expect([end.status, codesOf(events)]).toEqual(['completed', ['answer_cut']])
  })

  test('has its say without tools in plan mode and without those disallowed', async () => {
    model.play({ text: 'A plan.' }, { text: 'Hi.' })
    await play({ options: { permissionMode: 'plan' } })
    model.play({ text: 'Hi.' })
    await play({ options: { disallowedTools: ['WebFetch', 'Bash(rm:*)'], permissionMode: 'acceptEdits' } })
    expect(model.requests.map(({ tools }) => tools)).toEqual([
      ['Read', 'Glob', 'Grep', 'LS', 'TodoWrite', 'WebFetch'],
      ['Read', 'Write', 'Edit', 'MultiEdit', 'Glob', 'Grep', 'LS', 'TodoWrite'],
    ])
    expect(system()).toContain('Plan mode')
  })
})

describe('the system prompt', () => {
  test('tells of the sandbox, the project and the agent', async () => {
    await shell('printf "Use tabs." > AGENTS.md; printf "Use tabs." > CLAUDE.md; git init -q -b trunk . 2>/dev/null')
    await play({ turn: { systemPrompt: 'You review.' } })
    expect(system()).toContain('Working directory: /home/user')
    expect(system()).toContain('branch trunk')
    expect(system()).toContain('python3')
    expect(system()).toContain('You review.')
    expect(system().split('Use tabs.')).toHaveLength(2)
  })

  test('has both notes when they differ, and a large one cut', async () => {
    await put('/home/user/AGENTS.md', Buffer.from(`begin ${'x'.repeat(100_000)} end`))
    await put('/home/user/CLAUDE.md', Buffer.from('other'))
    await play()
    expect(system()).toMatch(/begin x+.*left out.*x end/)
    expect(system()).toContain('other')
    expect(system().length).toBeLessThan(40_000)
  })

  test('and the end of the conversation are marked for the cache on Anthropic', async () => {
    model.play({ calls: [bash('echo 1')] }, { text: 'Done.' })
    await play()
    const marks = model.requests.map(({ body }) => JSON.stringify(body).split('"cache_control"').length - 1)
    expect(marks).toEqual([2, 3])
    expect(system()).toContain('"cache_control":{"type":"ephemeral"}')
  })
})

test('a turn of 500 calls holds little', async () => {
  let step = 0
  let peak = 0
  const answer = ({ tools }: { tools: string[] }) => {
    if (tools.length === 0) return { text: 'SUMMARY' }
    if (step % 100 === 99) peak = Math.max(peak, bytesInUse())
    return step++ < 500 ? { text: 'Next. ', calls: [bash('head -c 4000 /dev/zero | tr "\\0" a')] } : { text: 'Done.' }
  }
  model.play(...Array.from({ length: 520 }, () => answer))
  const keep = model.requests.push.bind(model.requests)
  // The server's own record of 500 growing requests is not what is measured.
  model.requests.push = (...requests) => keep(...requests.splice(0, 0))
  const before = bytesInUse()
  const { end, parts } = await play({ options: { maxTurns: 600 } })
  expect([end.status, parts.filter(({ type }) => type === 'tool-Bash').length]).toEqual(['completed', 500])
  expect(peak - before).toBeLessThan(100 * 1024 * 1024)
}, 120_000)

test('a cancel at any moment ends all at once, with nothing alive', async () => {
  const tookMs: number[] = []
  for (let round = 0; round < 50; round++) {
    const abort = new AbortController()
    model.play(
      { text: 'Some words before it. ', calls: [bash('sleep 0.02; echo a'), bash('echo b')] },
      { text: 'more '.repeat(10), calls: [bash('setsid sleep 7501 & sleep 7501')] },
    )
    let abortedAtMs = 0
    setTimeout(() => {
      abortedAtMs = performance.now()
      abort.abort()
    }, Math.random() * 150)
    const { end } = await play({ context: { signal: abort.signal } })
    tookMs.push(performance.now() - abortedAtMs)
    expect([end.status, await shell('pgrep -c "^sleep" || true')]).toEqual(['cancelled', '0\n'])
  }
  // Not once the grace time of a run, at whose end it would be given up.
  expect(Math.max(...tookMs)).toBeLessThan(5000)
}, 60_000)
