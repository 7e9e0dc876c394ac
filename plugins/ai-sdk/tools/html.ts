import { Tokenizer } from 'htmlparser2'

const unseen = new Set(['script', 'style', 'noscript', 'template', 'svg', 'iframe', 'head'])
const blocks = new Set([
  ...['p', 'div', 'section', 'article', 'header', 'footer', 'main', 'nav', 'aside', 'br', 'hr', 'tr', 'table', 'ul'],
  ...['ol', 'li', 'blockquote', 'pre', 'form', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6'],
])
const NO_BREAK_SPACE = 0xa0

/**
 * Converts a page to its visible text, with marks for headings and list items, and addresses of links. It is read tag by tag:
 * a tree, or a list of the open elements, takes hours for a page that opens a million elements.
 */
export function htmlToText(html: string): string {
  const pieces: string[] = []
  /** The element that is skipped now, and how many elements of its name are open in it. */
  let hidden: { name: string; depth: number } | undefined
  let link = ''
  let tag = ''
  let attribute = ''
  let href = ''

  function open(): void {
    if (hidden?.name === 'head' && tag === 'body') hidden = undefined
    if (hidden) hidden.depth += hidden.name === tag ? 1 : 0
    else if (unseen.has(tag)) hidden = { name: tag, depth: 1 }
    else if (blocks.has(tag)) pieces.push('\n', toMark(tag))
    else if (tag === 'td' || tag === 'th') pieces.push(' | ')
    else if (tag === 'a') {
      closeLink()
      link = /^https?:/.test(href) ? href : ''
    }
  }

  function close(name: string): void {
    if (hidden) {
      if (hidden.name === name) hidden.depth -= 1
      if (hidden.depth === 0) hidden = undefined
    } else if (name === 'a') closeLink()
    else if (blocks.has(name)) pieces.push('\n')
  }

  function closeLink(): void {
    if (link) pieces.push(` (${link})`)
    link = ''
  }

  const say = (text: string) => {
    if (!hidden) pieces.push(text.replace(/\s+/g, ' '))
  }
  const nothing = () => {}
  const tokenizer = new Tokenizer(
    { decodeEntities: true, recognizeSelfClosing: true },
    {
      onopentagname(start, end) {
        tag = html.slice(start, end).toLowerCase()
        href = ''
      },
      onattribname(start, end) {
        attribute = html.slice(start, end).toLowerCase()
      },
      onattribdata(start, end) {
        if (attribute === 'href') href += html.slice(start, end)
      },
      onattribentity(code) {
        if (attribute === 'href') href += String.fromCodePoint(code)
      },
      onopentagend: open,
      onselfclosingtag() {
        open()
        if (hidden) close(tag)
      },
      onclosetag: (start, end) => close(html.slice(start, end).toLowerCase()),
      ontext: (start, end) => say(html.slice(start, end)),
      ontextentity: code => say(code === NO_BREAK_SPACE ? ' ' : String.fromCodePoint(code)),
      ...{ onattribend: nothing, oncdata: nothing, oncomment: nothing, ondeclaration: nothing, onend: nothing },
      onprocessinginstruction: nothing,
    },
  )
  tokenizer.write(html)
  tokenizer.end()
  return pieces
    .join('')
    .replace(/[ \t]+/g, ' ')
    .replace(/ ?\n ?/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()
}

function toMark(tag: string): string {
  const level = /^h([1-6])$/.exec(tag)?.[1]
  return level ? `${'#'.repeat(Number(level))} ` : tag === 'li' ? '- ' : ''
}
