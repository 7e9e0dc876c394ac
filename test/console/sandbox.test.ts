import { beforeAll, expect, test } from 'bun:test'
import { freePort, useConsole } from './console.ts'

// A page finds a server that was started again at the same address.
const { server, open } = useConsole({ port: freePort() })
let id = ''
beforeAll(async () => {
  const files = {
    '/home/user/a.txt': 'hello\n',
    '/home/user/<img src=x onerror=window.hit=1>.txt': 'odd',
    '/home/user/evil.svg': '<svg xmlns="http://www.w3.org/2000/svg"><script>window.hit = 2</script></svg>',
    '/home/user/site/index.html':
      '<h1>From inside</h1><script>try { parent.document.title } catch (e) { document.body.append(" apart") }</script>',
  }
  id = (await server.ask('POST', '/v1/sandboxes', { agent: 'echo', files })).body.id
})
const inside = (path = '') => ({ path: `/sandboxes/${id}${path}` })
const shell = async (command: string) => (await server.ask('POST', `/v1/sandboxes/${id}/exec`, { command })).body.stdout

test('a text is edited and saved', async () => {
  const { page } = await open(inside('/files'))
  await page.getByRole('button', { name: 'a.txt', exact: true }).click()
  await page.getByLabel('Text of /home/user/a.txt').fill('changed\n')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('button', { name: 'Save' }).waitFor({ state: 'detached' })
  expect(await shell('cat /home/user/a.txt')).toBe('changed\n')
})

test('files are uploaded, shown, renamed and deleted', async () => {
  const { page } = await open(inside('/files'))
  const content = Buffer.alloc(3_000_000, 'x')
  await page
    .getByLabel('Files to upload')
    .setInputFiles([{ name: 'big file.bin', mimeType: 'application/octet-stream', buffer: content }])
  await page.getByRole('button', { name: 'big file.bin', exact: true }).waitFor()
  expect(await shell('stat -c %s "/home/user/big file.bin"')).toBe('3000000\n')
  await page.getByRole('button', { name: 'More about big file.bin' }).click()
  await page.getByRole('menuitem', { name: 'Rename' }).click()
  await page.getByLabel('New path').fill('/home/user/small.bin')
  await page.getByRole('button', { name: 'Rename' }).click()
  await page.getByRole('button', { name: 'More about small.bin' }).click()
  await page.getByRole('menuitem', { name: 'Delete' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  // The page behind a dialog is not to be found by its roles.
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'small.bin', exact: true }).waitFor({ state: 'detached' })
  expect(await shell('ls /home/user')).not.toContain('.bin')
})

test('names and pictures of a sandbox run nothing: regression', async () => {
  const { page } = await open(inside('/files'))
  await page
    .getByRole('button', { name: /<img src=x/ })
    .first()
    .click()
  await page.getByRole('button', { name: 'evil.svg', exact: true }).click()
  await page.getByRole('img', { name: '/home/user/evil.svg' }).waitFor()
  expect(await page.evaluate('window.hit')).toBeUndefined()
})

test('a terminal shows what is typed, and is there again after a reload', async () => {
  const { page } = await open(inside('/terminals'))
  await page.getByRole('button', { name: 'New terminal' }).click()
  const terminal = page.getByRole('region', { name: /^Terminal/ })
  await terminal.getByText('#').first().waitFor()
  await terminal.click()
  await page.keyboard.type('echo $((6*7))-done\n')
  await terminal.getByText('42-done').first().waitFor()
  await page.reload()
  await terminal.getByText('42-done').first().waitFor()
  await page.getByRole('button', { name: 'Close it' }).click()
  await page.getByText('No terminal is open').waitFor()
})

test('a terminal comes back after its connection was lost', async () => {
  const opened = await open(inside('/terminals'))
  const { page } = opened
  await page.getByRole('button', { name: 'New terminal' }).click()
  const terminal = page.getByRole('region', { name: /^Terminal/ })
  await terminal.getByText('#').first().waitFor()
  opened.expected.push(/WebSocket connection|ERR_|Failed to load/)
  await server.kill()
  await page.getByText('The connection is lost').waitFor()
  await server.start()
  await page.getByText('The connection is lost').waitFor({ state: 'detached' })
  await terminal.click()
  await page.keyboard.type('echo $((6*7))-again\n')
  await terminal.getByText('42-again').first().waitFor()
  await page.getByRole('button', { name: 'Close it' }).click()
  await page.getByText('No terminal is open').waitFor()
})

test('a process is started, its output followed, and it is killed', async () => {
  const { page } = await open(inside('/processes'))
  await page.getByLabel('Command').fill('echo begun; while read line; do echo "$line"; done; sleep 1000')
  await page.getByRole('button', { name: 'Start' }).click()
  await page.getByRole('log').getByText('begun').waitFor()
  await page.getByRole('listitem').filter({ hasText: 'begun' }).getByRole('button', { name: 'Kill' }).click()
  await page.getByRole('log').waitFor({ state: 'detached' })
})

test('what others start is seen at once, and how it ended, without asking again and again', async () => {
  const { page } = await open(inside('/processes'))
  await page.getByLabel('Command').waitFor()
  let lists = 0
  page.on('request', request => {
    if (request.method() === 'GET' && request.url().endsWith('/processes')) lists++
  })
  const start = { command: 'read line; exit 3', stdin: true }
  const { pid } = (await server.ask('POST', `/v1/sandboxes/${id}/processes`, start)).body
  const row = page.getByRole('list', { name: 'Processes' }).getByRole('listitem').filter({ hasText: 'read line' })
  await row.getByText('running').waitFor()
  await server.ask('POST', `/v1/sandboxes/${id}/processes/${pid}/stdin`, { data: '\n' })
  await row.getByText('exited with 3').waitFor()
  await server.ask('DELETE', `/v1/sandboxes/${id}/processes/${pid}`)
  await row.waitFor({ state: 'detached' })
  expect(lists).toBeLessThanOrEqual(6)
})

test('a port is shown in a frame, which reaches nothing of the console: regression', async () => {
  await server.ask('POST', `/v1/sandboxes/${id}/processes`, {
    command: 'exec python3 -m http.server 8000',
    cwd: '/home/user/site',
  })
  await shell('until curl -s localhost:8000 >/dev/null; do sleep 0.05; done')
  const opened = await open(inside('/ports'))
  // The frame tries to read the page around it, which Chromium says on its console.
  opened.expected.push(/Blocked a frame|Failed to read/)
  await opened.page.getByLabel('Port of a server inside').fill('8000')
  await opened.page.getByRole('button', { name: 'Show' }).click()
  const frame = opened.page.frameLocator('iframe')
  await frame.getByRole('heading', { name: 'From inside' }).waitFor()
  await frame.getByText('apart').waitFor()
})

test('what was refused is allowed by one click', async () => {
  await shell('curl -s https://10.1.2.3; curl -s http://127.0.0.1:3128/x -o /dev/null; true')
  const { page } = await open(inside('/network'))
  await page.getByRole('checkbox', { name: 'Only what is on a list' }).check()
  await page.getByRole('button', { name: 'Apply' }).click()
  await page.getByText('It holds from now on.').waitFor()
  await shell('curl -s https://b.example.com; true')
  await page
    .getByRole('row', { name: /b\.example\.com/ })
    .getByRole('button', { name: 'Allow' })
    .click()
  const { network } = (await server.ask('GET', `/v1/sandboxes/${id}`)).body
  expect(network.allowOut).toEqual(['b.example.com:443'])
})

test('a target that is allowed leaves the rules of others as they are', async () => {
  await server.ask('PATCH', `/v1/sandboxes/${id}`, { networkAllowOut: ['a.example.com'], networkDenyOut: [] })
  await shell('curl -s https://c.example.com; true')
  const { page } = await open(inside('/network'))
  const allow = page.getByRole('row', { name: /c\.example\.com/ }).getByRole('button', { name: 'Allow' })
  await allow.waitFor()
  await page.getByLabel('Refused, one a line').fill('unfinished.exa')
  const seen = page.waitForResponse(response => response.url().endsWith(`/v1/sandboxes/${id}`))
  await server.ask('PATCH', `/v1/sandboxes/${id}`, { networkDenyOut: ['bad.example.com'] })
  await (await seen).finished()
  await allow.click()
  await page.getByText('It holds from now on.').waitFor()
  const { network } = (await server.ask('GET', `/v1/sandboxes/${id}`)).body
  expect(network).toMatchObject({
    allowOut: ['a.example.com', 'c.example.com:443'],
    denyOut: ['bad.example.com'],
  })
})

test('what a wildcard refuses is said to need more than a click', async () => {
  await server.ask('PATCH', `/v1/sandboxes/${id}`, { networkAllowOut: null, networkDenyOut: ['*.example.net'] })
  await shell('curl -s https://d.example.net; true')
  const { page } = await open(inside('/network'))
  const row = page.getByRole('row', { name: /d\.example\.net/ })
  await row.getByText('Not by a click: *.example.net is denied').waitFor()
  expect(await row.getByRole('button').count()).toBe(0)
  await page.getByLabel('Refused, one a line').fill('')
  await page.getByRole('button', { name: 'Apply' }).click()
  await row.getByText('Allowed by now').waitFor()
})

for (const [name, path] of [
  ['threads', ''],
  ['files', '/files'],
  ['terminals', '/terminals'],
  ['processes', '/processes'],
  ['ports', '/ports'],
  ['network', '/network'],
] as const) {
  for (const scheme of ['light', 'dark'] as const) {
    test(`${name} of a sandbox are in nobody’s way: ${scheme}`, async () => {
      const opened = await open({ ...inside(path), scheme })
      await opened.page.getByRole('heading', { level: 1 }).waitFor()
      await opened.settled()
      expect(await opened.accessibility()).toEqual([])
      await opened.picture(`sandbox-${name}-${scheme}`)
    })
  }
}
