import { beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { useApp } from '../support/app.ts'
import { checkTable } from './page.ts'
import { useOptions } from './sdks.ts'

const app = useApp()
const options = useOptions(app)
const root = join(import.meta.dir, '../..')

async function run(command: string[], env: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn(command, { cwd: root, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] })
  const [stdout, code] = await Promise.all([child.stdout.text(), child.exited])
  if (code !== 0) throw new Error(`${command.join(' ')}: ${stdout}`)
  return stdout
}

// It is there already when scripts/test has brought it.
beforeAll(() => run(['scripts/e2b-python']).then(() => {}), 300_000)

test('docs/e2b.md says of each method of the SDK for Python what it does here', async () => {
  const printed = await run(['python3', 'scripts/e2b/matrix.py', 'sdk'], {
    ...{ PYTHONPATH: join(root, '.cache/e2b-python'), PYTHONDONTWRITEBYTECODE: '1' },
    ...{ E2B_API_KEY: options.apiKey, E2B_API_URL: app.url, E2B_SANDBOX_URL: app.url },
  })
  const rows = printed
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as [version: string, method: string, said: string])
  expect(rows.length).toBeGreaterThan(60)
  const table = [['method', rows[0]![0]], ...rows.map(([, method, said]) => [`\`${method}\``, said])]
  await checkTable('python', table)
}, 240_000)
