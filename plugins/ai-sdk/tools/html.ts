const unseen = 'script, style, noscript, template, svg, iframe, head'
const blocks =
  'p, div, section, article, header, footer, main, nav, aside, br, hr, tr, table, ul, ol, blockquote, pre, form, h1, h2, h3, h4, h5, h6, li'

/** A page as text: what a person reads of it, headings and list items marked, links with their addresses. */
export async function htmlToText(html: string): Promise<string> {
  const pieces: string[] = []
  const page = new HTMLRewriter()
    .on(blocks, {
      element(element) {
        const heading = /^h([1-6])$/.exec(element.tagName)
        pieces.push('\n', heading ? `${'#'.repeat(Number(heading[1]))} ` : element.tagName === 'li' ? '- ' : '')
        if (element.canHaveContent && !element.selfClosing) element.onEndTag(() => void pieces.push('\n'))
      },
    })
    .on('td, th', { element: () => void pieces.push(' | ') })
    .on('a[href]', {
      element(element) {
        const href = element.getAttribute('href') ?? ''
        if (/^https?:/.test(href)) element.onEndTag(() => void pieces.push(` (${href})`))
      },
    })
    .onDocument({
      text(chunk) {
        pieces.push(chunk.text.replace(/\s+/g, ' '))
      },
    })
  const seen = new HTMLRewriter().on(unseen, { element: element => void element.remove() })
  await page.transform(seen.transform(new Response(html))).text()
  return decodeEntities(pieces.join(''))
    .replace(/[ \t]+/g, ' ')
    .replace(/ ?\n ?/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  mdash: '—',
  ndash: '–',
  hellip: '…',
  copy: '©',
}

const decodeEntities = (text: string): string =>
  text.replace(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z]+));/gi, (all, hex, decimal, name) => {
    if (name) return entities[name] ?? all
    const code = hex ? Number.parseInt(hex, 16) : Number(decimal)
    return code <= 0x10_ffff ? String.fromCodePoint(code) : all
  })
