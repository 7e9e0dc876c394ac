import { jsonSchema, type ToolSet, tool as toSdkTool } from 'ai'
import { messageOf } from '../../src/errors.ts'
import type { EngineContext, EngineEnd, EngineEvent, Turn } from '../../src/plugin-api/index.ts'
import { takeAnswers } from './answers.ts'
import { estimateTextTokens } from './context/context-entries.ts'
import { toEntries } from './context/history.ts'
import { probeSandbox } from './context/probe-sandbox.ts'
import { readProjectInstructions } from './context/project-instructions.ts'
import { systemPrompt } from './context/system-prompt.ts'
import { runLoop } from './loop.ts'
import { openMcpServers } from './mcp/servers.ts'
import { createCallIds } from './model/call-ids.ts'
import { explain, failed } from './model/failure.ts'
import { type Model, openModel, systemMessage } from './model/model.ts'
import { ownTools } from './tools/all.ts'
import { allowedTools } from './tools/allowed.ts'
import { runCode } from './tools/run-code.ts'

/** Runs one turn. Never throws for a failure of the model, of an MCP server or of the sandbox. */
export async function* runTurn(turn: Turn, context: EngineContext): AsyncGenerator<EngineEvent, EngineEnd> {
  let model: Model
  try {
    model = openModel(context.openModel())
  } catch (error) {
    return explain(error)
  }
  const servers = await openMcpServers(context)
  try {
    yield* servers.notices
    const hasInterpreter = context.environment.code?.isThere() ?? false
    const [facts, instructions, hasCells] = await Promise.all([
      probeSandbox(context),
      readProjectInstructions(context),
      hasInterpreter,
    ])
    const all = [...ownTools, ...(hasCells ? [runCode] : []), ...servers.tools]
    const tools = allowedTools(all, context.options)
    const prompt = systemPrompt({
      cwd: context.cwd,
      facts,
      instructions,
      tools: new Set(tools.map(({ name }) => name)),
      isPlanMode: context.options.permissionMode === 'plan',
      ...(turn.systemPrompt !== undefined && { systemPrompt: turn.systemPrompt }),
    })
    const { permissions, clientTools, steering, signal } = context
    const toolMap = new Map(tools.map(tool => [tool.name, tool]))
    const toolContext = { ...context, programs: facts.programs }
    const callIds = createCallIds(listCallIds(turn))
    const answering = { tools: toolMap, toolContext, callIds }
    const answered = turn.continues ? yield* takeAnswers(turn.continues, answering) : []
    if (signal.aborted) return { status: 'cancelled' }
    const entries = toEntries([...turn.history, ...turn.prompt, ...answered], model.wire)
    return yield* runLoop({
      model,
      system: systemMessage(model, prompt),
      fixedTokens: estimateTextTokens(prompt) + estimateTextTokens(JSON.stringify(tools) + JSON.stringify(clientTools)),
      entries,
      tools: toolMap,
      toolSet: {
        ...Object.fromEntries(
          tools.map(({ name, description, inputSchema }) => [name, toSdkTool({ description, inputSchema })]),
        ),
        ...toToolSet(clientTools),
      },
      toolContext,
      permissions,
      clientTools,
      steering,
      callIds,
      ...(context.options.maxTurns !== undefined && { maxTurns: context.options.maxTurns }),
    })
  } catch (error) {
    if (context.signal.aborted) return { status: 'cancelled' }
    return failed('agent_failed', messageOf(error))
  } finally {
    await servers.close()
  }
}

/** The tools of the client, for the model. */
const toToolSet = (clientTools: EngineContext['clientTools']): ToolSet =>
  Object.fromEntries(
    Object.entries(clientTools).map(([name, { description, inputSchema }]) => [
      name,
      toSdkTool({ description, inputSchema: jsonSchema(inputSchema) }),
    ]),
  )

const listCallIds = ({ history, prompt, continues }: Turn): string[] =>
  [...history, ...prompt, ...(continues ? [continues.reply] : [])].flatMap(({ parts }) =>
    parts.flatMap(({ toolCallId }) => (typeof toolCallId === 'string' ? [toolCallId] : [])),
  )
