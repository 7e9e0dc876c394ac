import { typesText } from '../external/types-text.ts' with { type: 'macro' }
import { splitWords, UsageError } from './flags.ts'
import type { LoadPlugins } from './open-runtime.ts'

const usage = 'threadbox plugin test FILE [FLAGS] | types'

/** For authors of plugins. False when a test failed. */
export async function plugin(args: readonly string[], load: LoadPlugins): Promise<boolean> {
  const { words, flags } = splitWords(args)
  const [action, file, ...more] = words
  if (action === 'types' && !file && flags.length === 0) {
    process.stdout.write(typesText())
    return true
  }
  if (action !== 'test' || !file || more.length > 0) throw new UsageError(`usage: ${usage}`)
  return await (await import('./plugin-test.ts')).testPlugin(file, flags, load)
}
