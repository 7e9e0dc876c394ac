import { probeSandbox } from '../../../plugins/ai-sdk/context/probe-sandbox.ts'
import { ownTools } from '../../../plugins/ai-sdk/tools/all.ts'
import type { ToolOutput } from '../../../plugins/ai-sdk/tools/output.ts'
import type { ToolContext } from '../../../plugins/ai-sdk/tools/tool.ts'
import type { TestSandbox } from '../../support/sandbox.ts'

export type UseTool = (name: string, input: unknown, more?: Partial<ToolContext>) => Promise<ToolOutput>

/** Calls the engine's tools in a sandbox, as the loop does. */
export async function toolsIn({ environment }: TestSandbox): Promise<UseTool> {
  const signal = new AbortController().signal
  const permissions: ToolContext['permissions'] = { decide: () => ({ decision: 'allow' }) }
  const common = { environment, cwd: '/home/user', env: {}, signal, permissions }
  const { programs } = await probeSandbox({
    ...common,
    options: {},
    clientTools: {},
    fetch,
    openModel: () => {
      throw new Error('no model')
    },
  })
  return (name, input, more = {}) => {
    const tool = ownTools.find(own => own.name === name)
    if (!tool) throw new Error(`no tool ${name}`)
    return tool.run(input, { ...common, programs, fetch, progress: () => {}, ...more })
  }
}

export const errorOf = async (running: Promise<unknown>): Promise<string> =>
  running.then(
    () => 'no error',
    error => String(error.message),
  )
