import { z } from 'zod'
import { defineTool, resolvePath } from './tool.ts'

export const write = defineTool({
  name: 'Write',
  description:
    'Writes a file, its directories made, what was there replaced. To change a part of a file, use Edit. Make no documentation that nobody asked for.',
  input: z.object({
    file_path: z.string().min(1).describe('The absolute path of the file'),
    content: z.string().describe('All that the file is to hold'),
  }),
  runsAlone: true,
  async run({ file_path, content }, context) {
    const { files } = context.environment
    const path = resolvePath(context, file_path)
    const before = await files.info(path)
    await files.write(path, Buffer.from(content), context.signal)
    return before ? `The file ${path} has been updated.` : `File created successfully at: ${path}`
  },
})
