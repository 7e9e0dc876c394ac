import { beforeEach, expect, test } from 'bun:test'
import { until } from '../support/until.ts'
import { useConsole } from './console.ts'
import { expectText } from './payloads.ts'

const { server, open } = useConsole()
let id = ''
// The page shows the first terminal of a sandbox.
beforeEach(async () => {
  id = await server.sandbox()
})

const ESC = '\u001b'
const BELL = '\u0007'
const STRING_END = `${ESC}\\`
const script = 'javascript:window.hit=1//'

/** What programs may print to a terminal, which is more than a page would have of it. */
const printed: Readonly<Record<string, string>> = {
  'a link that is a script': `${ESC}]8;;${script}${BELL}LINK${ESC}]8;;${BELL}`,
  'a link that is a document': `${ESC}]8;id=a;data:text/html,<script>parent.hit=1</script>${STRING_END}LINK${ESC}]8;;${STRING_END}`,
  'a link to another host': `${ESC}]8;;https://evil.example/${BELL}LINK${ESC}]8;;${BELL}`,
  'a title': `${ESC}]0;hit${BELL}${ESC}]2;<script>window.hit=1</script>${BELL}${ESC}[22;0t${ESC}[23;0t`,
  'a title that is asked for': `${ESC}]2;echo hit${BELL}${ESC}[21t`,
  'a clipboard that is written': `${ESC}]52;c;${btoa('hit')}${BELL}`,
  'a clipboard that is asked for': `${ESC}]52;c;?${BELL}${ESC}]52;p;?${STRING_END}`,
  'colours with HTML': `${ESC}]4;1;url(https://evil.example/a.png)${BELL}${ESC}]10;<img src=x onerror=alert(1)>${BELL}`,
  'HTML in colours': `${ESC}[1;31m<img src=x onerror="window.hit=1"><script>alert(1)</script>${ESC}[0m`,
  'device control': `${ESC}P$q<script>window.hit=1</script>${STRING_END}${ESC}P+q${'41'.repeat(500)}${STRING_END}`,
  'a picture by device control': `${ESC}Pq#0;2;0;0;0#0~~@@vv${STRING_END}${ESC}_Gf=100;AAAA${STRING_END}`,
  'a picture by its address': `${ESC}]1337;File=inline=1;name=${btoa(script)}:${btoa('<svg onload=alert(1)>')}${BELL}`,
  'messages and privacy': `${ESC}^<script>alert(1)</script>${STRING_END}${ESC}X${script}${STRING_END}`,
  'a notification': `${ESC}]9;hit${BELL}${ESC}]777;notify;hit;hit${BELL}`,
  'parameters without end': `${ESC}[${'9;'.repeat(20_000)}m${ESC}[${'9'.repeat(100_000)}C`,
  'repeats without end': ['b', 'L', 'M', 'S', 'T', 'I', 'Z', '@', 'P', 'X', ' @', ' A', "'}", "'~"]
    .map(final => `${ESC}[2Ja${ESC}[2147483647${final}`)
    .join(''),
  'a size without end': `${ESC}[8;99999;99999t`,
  'a sequence of 1 MB': `${ESC}]8;;https://a.example/${'a'.repeat(1_000_000)}${BELL}LINK${ESC}]8;;${BELL}`,
  'a line of 100 KB': '0123456789'.repeat(10_000),
  'letters of no alphabet': `\u202e\u2066turned\u2069 ${'\u0301'.repeat(5000)} \ufffe`,
  'malformed sequences': `${ESC}[${ESC}]${ESC}P${ESC}[?;;;$~${ESC}]8${BELL}${ESC}]${'x'.repeat(300)}${BELL}${ESC}%${ESC}#9${ESC}[<>=m`,
}

/** Ends a sequence that is not whole, and begins a line. */
const RESET = `\u0018${STRING_END}${ESC}[0m\r\n`

for (const [kind, bytes] of Object.entries(printed)) {
  test(`a terminal shows ${kind}, and does no more of it: regression`, async () => {
    await server.ask('POST', `/v1/sandboxes/${id}/files`, { path: '/tmp/printed', content: bytes })
    await server.ask('POST', `/v1/sandboxes/${id}/files`, { path: '/tmp/reset', content: RESET })
    // What the terminal answers to a program is what was typed as far as the program knows: it is read here, not run.
    const command =
      'stty raw -echo; cat /tmp/printed; read -rt 1 -N 4096 said; cat /tmp/reset; stty sane; printf "%s" "$said" > /tmp/said; echo "the $((40+2))"; read line'
    const start = { command: ['bash', '-c', command], pty: true, name: 'terminal' }
    const { pid } = (await server.ask('POST', `/v1/sandboxes/${id}/processes`, start)).body
    const opened = await open({ path: `/sandboxes/${id}/terminals` })
    const { page } = opened
    const terminal = page.getByRole('region', { name: `Terminal ${pid}` })
    await until(async () => (await terminal.textContent())?.includes('the 42') === true)
    await page.mouse.click(400, 300)
    await expectText(opened, [])
    expect(await page.evaluate('document.hasFocus() && navigator.clipboard.readText().catch(() => "")')).not.toBe('hit')
    const { stdout: said } = await server.exec(id, 'cat /tmp/said')
    // Replies that repeat what was printed would be commands of the program's to the shell after it.
    expect(said).not.toMatch(/hit|script|evil/)
  })
}

test('a click on a link of a terminal opens nothing: regression', async () => {
  const links = ['javascript:window.hit=1//', 'data:text/html,hit', 'https://evil.example/'].map(
    address => `${ESC}]8;;${address}${BELL}LINK-LINK-LINK${ESC}]8;;${BELL} ${address}`,
  )
  await server.ask('POST', `/v1/sandboxes/${id}/files`, { path: '/tmp/printed', content: links.join('\r\n') })
  const start = { command: ['bash', '-c', 'cat /tmp/printed; echo; echo "the $((40+2))"; read line'], pty: true }
  const { pid } = (await server.ask('POST', `/v1/sandboxes/${id}/processes`, start)).body
  const opened = await open({ path: `/sandboxes/${id}/terminals` })
  const { page } = opened
  const terminal = page.getByRole('region', { name: `Terminal ${pid}` })
  await until(async () => (await terminal.textContent())?.includes('the 42') === true)
  const box = await page.locator('.xterm-screen').boundingBox()
  if (!box) throw new Error('no terminal')
  for (const modifier of [undefined, 'Control', 'Meta', 'Alt'] as const) {
    if (modifier) await page.keyboard.down(modifier)
    for (let row = 0; row < 3; row++)
      for (const column of [20, 200]) await page.mouse.click(box.x + column, box.y + 9 + row * 17)
    if (modifier) await page.keyboard.up(modifier)
  }
  await expectText(opened, ['LINK-LINK-LINK'])
  expect(page.context().pages()).toHaveLength(1)
  expect(page.url()).toBe(`${server.url}/sandboxes/${id}/terminals`)
})
