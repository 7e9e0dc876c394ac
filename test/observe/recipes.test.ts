import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readPage } from '../docs/page.ts'
import { promtool } from '../support/promtool.ts'

test('Prometheus takes the scrape job and the alerts of the documentation', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'threadbox-recipes-'))
  try {
    const blocks = readPage('docs/observability.md').blocks.filter(({ language }) => language === 'yaml')
    const [job = '', alerts = ''] = blocks.map(({ code }) => code)
    const [config, rules, key] = ['prometheus.yml', 'alerts.yml', 'key'].map(name => join(directory, name)) as [
      string,
      string,
      string,
    ]
    writeFileSync(key, 'tbx_key')
    writeFileSync(config, `${job.replace('/etc/prometheus/threadbox.key', key)}rule_files: [alerts.yml]\n`)
    writeFileSync(rules, alerts)
    const checker = Bun.spawn([await promtool(), 'check', 'config', config], { stdout: 'pipe', stderr: 'pipe' })
    const said = (await checker.stdout.text()) + (await checker.stderr.text())
    expect([await checker.exited, said]).toEqual([0, expect.stringContaining('SUCCESS: 7 rules found')])
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})

test('an alert asks for figures that there are', async () => {
  const { text, blocks } = readPage('docs/observability.md')
  const alerts = blocks.filter(({ language }) => language === 'yaml')[1]?.code ?? ''
  const named = alerts.match(/\b(threadbox|process|gen_ai)_\w+/g) ?? []
  expect(named.length).toBeGreaterThan(5)
  expect(named.filter(name => !text.includes(`\`${name}\``))).toEqual([])
})
