import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { useApp } from '../support/app.ts'
import { drawMatrix } from './matrix.ts'
import { useOptions } from './sdks.ts'

const app = useApp()
const options = useOptions(app)
const page = join(import.meta.dir, '../../docs/e2b.md')
const begin = '<!-- made by scripts/e2b-matrix -->\n\n'
const end = '\n\n<!-- end -->'

test('docs/e2b.md says of each method of each version what it does here', async () => {
  const drawn = await withVariables(
    { E2B_API_KEY: options.apiKey, E2B_API_URL: app.url, E2B_SANDBOX_URL: app.url },
    () => drawMatrix(options),
  )
  const text = await Bun.file(page).text()
  const [before = '', rest = ''] = text.split(begin)
  const [written = '', after = ''] = rest.split(end)
  if (process.env.THREADBOX_WRITE_MATRIX) await Bun.write(page, `${before}${begin}${drawn}${end}${after}`)
  else expect(written).toBe(drawn)
})

/** As programs are given what they need. Some methods of old versions read nothing else. */
async function withVariables<Result>(variables: Record<string, string>, work: () => Promise<Result>): Promise<Result> {
  const before = Object.fromEntries(Object.keys(variables).map(name => [name, process.env[name]]))
  Object.assign(process.env, variables)
  try {
    return await work()
  } finally {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
    }
  }
}
