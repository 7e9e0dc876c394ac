// See scripts/api-types. With --check it only says whether the file is up to date.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApp } from '../src/app.ts'
import { readConfig } from '../src/start/config.ts'
import { createRuntime } from '../src/start/runtime.ts'

const output = join(import.meta.dir, '../src/console/api/schema.d.ts')
const packages = { 'openapi-typescript': '7.13.0', typescript: '5.9.3' }

const directory = mkdtempSync(join(tmpdir(), 'threadbox-api-types-'))
try {
  const config = await readConfig(['--data-dir', join(directory, 'data'), '--api-key', 'x'.repeat(16)], {})
  const { runtime, close } = await createRuntime(config, { plugins: [], log() {} })
  const headers = { authorization: `Bearer ${'x'.repeat(16)}` }
  const answer = await createApp(runtime).fetch(new Request('http://localhost/v1/openapi.json', { headers }))
  writeFileSync(join(directory, 'openapi.json'), JSON.stringify(withoutErrors((await answer.json()) as Description)))
  await close()
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ name: 'types', dependencies: packages }))
  await run(['bun', 'install', '--no-save', '--silent'])
  const generated = await run(['bun', 'node_modules/openapi-typescript/bin/cli.js', 'openapi.json'])
  const text = `// Made by scripts/api-types from the API's description. Do not edit.\n${generated}`
  if (!process.argv.includes('--check')) writeFileSync(output, text)
  else if (readFileSync(output, 'utf8') !== text) throw new Error(`${output} is not up to date: run scripts/api-types`)
} finally {
  rmSync(directory, { recursive: true })
}

interface Description {
  paths: Record<string, Record<string, { responses?: Record<string, unknown> }>>
}

/** Every route has the same errors, which would be most of the file. */
function withoutErrors(api: Description) {
  for (const operation of Object.values(api.paths).flatMap(methods => Object.values(methods))) {
    const { responses = {} } = operation
    for (const status of Object.keys(responses)) if (Number(status) >= 400) delete responses[status]
  }
  return api
}

async function run(command: string[]): Promise<string> {
  const child = Bun.spawn(command, { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] })
  const text = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error(`${command.join(' ')} has failed`)
  return text
}
