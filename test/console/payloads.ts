import { expect } from 'bun:test'
import { until } from '../support/until.ts'
import type { ConsolePage } from './console.ts'

/** Texts that would do something in a page that takes them for more than text: each sets `window.hit`, or asks another host. */
export const payloads: Readonly<Record<string, string>> = {
  script: '<script>window.hit = "script"; alert(1)</script>',
  'the end of an element':
    '"\'></textarea></title></style></script></pre>--><script>window.hit = "end"</script><img src=x onerror=alert(1)>',
  'event handlers':
    '<img src=x onerror="window.hit = 1"><details open ontoggle="window.hit = 2"><body onload=alert(1)>',
  'an address that is a script': 'javascript:window.hit="address"//https://a.example',
  'an address in disguise': '\u0001 java\tscript:window.hit="disguise"',
  'an address that is a document': 'data:text/html,<script>parent.hit="data"</script>',
  'links of Markdown': '[a](javascript:window.hit=3) ![b](https://evil.example/b.png) <javascript:window.hit=4>',
  'a picture with a script':
    '<svg xmlns="http://www.w3.org/2000/svg" onload="window.hit = 5"><script>alert(1)</script></svg>',
  'what loads from others':
    '<link rel=stylesheet href=//evil.example/a.css><iframe src="https://evil.example"></iframe>',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: what another page would fill in
  'expressions of templates': '{{constructor.constructor("window.hit = 6")()}} ${window.hit = 7}',
  prototype: '__proto__',
  'a member of all objects': 'constructor',
  'turned letters': 'invoice\u202efdp.exe\u2066\u200b',
  'half of a letter': 'half \ud800 of it',
  'sequences of terminals':
    '\u001b]8;;javascript:window.hit=8\u0007link\u001b]8;;\u0007\u001b]0;title\u0007\u001b]52;c;aGl0\u0007',
  'a line of 100 KB': `begin ${'0123456789'.repeat(10_000)} end`,
}

/** What may be in the page, and would not be if a text had been taken for HTML. */
const FOREIGN =
  'script, iframe, object, embed, base, link, style:not(.terminal-box style), meta, img, body body, svg script, [onerror], [onload], [ontoggle]'

const READ = `(() => {
  const all = selector => [...document.querySelectorAll('#root ' + selector)]
  return {
    hit: window.hit ?? null,
    polluted: Object.keys(Object.getPrototypeOf({})),
    title: document.title,
    elements: ${JSON.stringify(FOREIGN)}.split(', ').flatMap(all).map(each => each.outerHTML.slice(0, 200)),
    addresses: all('[href]:not([download])').map(each => each.getAttribute('href')).filter(href => !/^(https?:\\/\\/|\\/(?!\\/)|#)/.test(href)),
    text: document.getElementById('root').textContent + all('input, textarea').map(({ value }) => value).join('\\n'),
  }
})()`

/** Fails when anything of the texts ran or became an element, or the page does not come to show each of them as it is. */
export async function expectText({ page }: ConsolePage, texts: readonly string[]): Promise<void> {
  let found = await page.evaluate<any>(READ)
  // Long ones are shown in part at first.
  const missing = () => texts.filter(each => !found.text.includes(each.slice(0, 100)))
  await until(async () => {
    found = await page.evaluate<any>(READ)
    return missing().length === 0
  }).catch(() => {})
  expect(missing()).toEqual([])
  const { text: _, ...rest } = found
  expect(rest).toEqual({ hit: null, polluted: [], title: 'threadbox', elements: [], addresses: [] })
}
