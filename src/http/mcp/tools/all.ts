import type { Tool } from '../tool.ts'
import { chatTools } from './chat.ts'
import { commandTools } from './commands.ts'
import { fileTools } from './files.ts'
import { processTools } from './processes.ts'
import { sandboxTools } from './sandboxes.ts'

/** In the order in which clients see them. */
export const tools: readonly Tool[] = [...sandboxTools, ...commandTools, ...fileTools, ...processTools, ...chatTools]

export const findTool = (name: string): Tool | undefined => tools.find(each => each.name === name)

/** Describes a tool as `tools/list` does. */
export const describeTool = ({ name, title, description, input, isReadOnly = false, isDestructive = false }: Tool) => ({
  name,
  title,
  description,
  inputSchema: withoutWords(input),
  annotations: { title, readOnlyHint: isReadOnly, destructiveHint: isDestructive, openWorldHint: !isReadOnly },
})

/** Removes `errorMessage`, which is only this server's text about a wrong field. */
const withoutWords = (schema: object): object =>
  JSON.parse(JSON.stringify(schema, (key, value) => (key === 'errorMessage' ? undefined : value)))
