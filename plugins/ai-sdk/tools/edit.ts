import { z } from 'zod'
import { replace, updated } from './replace.ts'
import { readTextFile } from './text-file.ts'
import { defineTool, resolvePath } from './tool.ts'

export const edit = defineTool({
  name: 'Edit',
  description: `Replaces a string in a file. Read the file before. "old_string" must be in the file exactly as given, with its indentation and without the line numbers that Read shows; it must be there once, or "replace_all" be true.`,
  input: z.object({
    file_path: z.string().min(1).describe('The absolute path of the file'),
    old_string: z.string().describe('The text to replace'),
    new_string: z.string().describe('The text to put in its place'),
    replace_all: z.boolean().optional().describe('Replaces every occurrence'),
  }),
  runsAlone: true,
  async run({ file_path, ...replacement }, context) {
    const { environment, signal } = context
    const path = resolvePath(context, file_path)
    const file = await readTextFile(environment, path, signal)
    const after = replace(file, replacement)
    await environment.files.write(path, Buffer.from(after), signal)
    return updated(path, file.text, after)
  },
})
