import { z } from 'zod'
import { messageOf } from '../../../src/errors.ts'
import { replace, updated } from './replace.ts'
import { readTextFile } from './text-file.ts'
import { defineTool, resolvePath } from './tool.ts'

export const multiEdit = defineTool({
  name: 'MultiEdit',
  description:
    'Makes several replacements in one file, one after the other, each as Edit does: all of them, or none when one fails.',
  input: z.object({
    file_path: z.string().min(1).describe('The absolute path of the file'),
    edits: z
      .array(
        z.object({
          old_string: z.string().describe('The text to replace'),
          new_string: z.string().describe('The text to put in its place'),
          replace_all: z.boolean().optional().describe('Replaces every occurrence'),
        }),
      )
      .min(1),
  }),
  runsAlone: true,
  async run({ file_path, edits }, context) {
    const { environment, signal } = context
    const path = resolvePath(context, file_path)
    const file = await readTextFile(environment, path, signal)
    let after = file.text
    edits.forEach((replacement, index) => {
      try {
        after = replace({ ...file, text: after }, replacement)
      } catch (error) {
        throw new Error(`Edit ${index + 1} of ${edits.length}: ${messageOf(error)}`)
      }
    })
    await environment.files.write(path, Buffer.from(after), signal)
    return `Applied ${edits.length} edit${edits.length === 1 ? '' : 's'}. ${updated(path, file.text, after)}`
  },
})
