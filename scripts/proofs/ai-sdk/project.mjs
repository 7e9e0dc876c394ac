// Runs under Node in the empty project of main.ts, where the packages come from npm. Each step is a process of its own.

import { readFileSync, writeFileSync } from 'node:fs'
import { HarnessAgent } from '@ai-sdk/harness/agent'
import { createClaudeCode } from '@ai-sdk/harness-claude-code'
import { createThreadboxSandbox } from '@threadbox/ai-sdk'

const { BASE_URL, API_KEY, MODEL_URL } = process.env
const [, , step] = process.argv
const sandbox = createThreadboxSandbox({ baseUrl: BASE_URL, apiKey: API_KEY, agent: 'coder' })
const harness = createClaudeCode({ auth: { anthropic: { apiKey: 'placeholder', baseUrl: MODEL_URL } } })
const agent = new HarnessAgent({ harness, sandbox })
const sessionId = 'proof'
const read = () => JSON.parse(readFileSync('state.json', 'utf8'))

async function say(session, prompt) {
  const begunAt = performance.now()
  const { text, steps } = await agent.generate({ session, prompt })
  const tools = (steps ?? []).flatMap(each => (each.toolResults ?? []).map(({ output, result }) => output ?? result))
  console.log(JSON.stringify({ step, node: process.version, text, tools, ms: Math.round(performance.now() - begunAt) }))
}

// As in a server, which stays when nothing is open for a moment.
setInterval(() => {}, 1000)
const begunAt = performance.now()
const open = options => agent.createSession({ sessionId, ...options })
const session = await (step === 'first'
  ? open({})
  : step === 'other'
    ? agent.createSession({ sessionId: 'other' })
    : open({ resumeFrom: read() }))
console.log(JSON.stringify({ step, createdInMs: Math.round(performance.now() - begunAt) }))
await say(session, 'Please RUN: echo from-$(id -un) > proof.txt; cat proof.txt; ls -a | wc -l')
if (step === 'first') writeFileSync('state.json', JSON.stringify(await session.detach()))
else if (step === 'attach') writeFileSync('state.json', JSON.stringify(await session.stop()))
else await session.destroy()
console.log(JSON.stringify({ step, ended: true }))
process.exit(0)
