import { typesText } from '../plugin-loader/types-text.ts' with { type: 'macro' }
import type { Given } from './command-line.ts'

/** Prints the types for a plugin's author, or tests a plugin. False when a test failed. */
export async function plugin(given: Given): Promise<boolean> {
  const { action, settings } = given
  const [file = ''] = given.words
  if (action === 'types') {
    process.stdout.write(typesText())
    return true
  }
  return await (await import('./plugin-test.ts')).testPlugin(file, settings)
}
