import { test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { drawMatrix } from './matrix.ts'
import { checkTable } from './page.ts'
import { useOptions } from './sdks.ts'

const app = useApp()
const options = useOptions(app)

test('docs/e2b.md says of each method of each version what it does here', async () => {
  const table = await withVariables(
    { E2B_API_KEY: options.apiKey, E2B_API_URL: app.url, E2B_SANDBOX_URL: app.url },
    () => drawMatrix(options),
  )
  await checkTable('javascript', table)
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
