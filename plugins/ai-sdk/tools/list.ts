import { z } from 'zod'
import { MAX_GLOB_CHARS } from './grep-command.ts'
import { cutEnd } from './output.ts'
import { defineTool, resolvePath } from './tool.ts'

export const list = defineTool({
  name: 'LS',
  description: 'Lists a directory. For files anywhere below one use Glob.',
  input: z.object({
    path: z.string().min(1).describe('The absolute path of the directory'),
    ignore: z.array(z.string().max(MAX_GLOB_CHARS)).max(100).optional().describe('Glob patterns of names to leave out'),
  }),
  isReadOnly: true,
  async run({ path, ignore = [] }, context) {
    const directory = resolvePath(context, path)
    const globs = ignore.map(pattern => new Bun.Glob(pattern))
    const entries = await context.environment.files.list(directory, 1)
    const lines = entries
      .filter(({ name }) => !globs.some(glob => glob.match(name)))
      .map(({ name, type, symlinkTarget }) => {
        const link = symlinkTarget === undefined ? '' : ` -> ${symlinkTarget}`
        return `  - ${name}${type === 'dir' ? '/' : ''}${link}`
      })
    if (lines.length === 0) return `${directory} is empty.`
    return cutEnd([`- ${directory.replace(/\/?$/, '/')}`, ...lines].join('\n'), 'Use Glob with a pattern.')
  },
})
