import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const root = join(import.meta.dir, '../..')

/** A fenced block of code. */
export interface Block {
  /** The first word after the fence; empty without one. */
  language: string
  /** What follows it: `serve`, or the name of a file. */
  label: string
  code: string
  /** The line of its fence, from 1. */
  line: number
  /** Why no test runs it, as a comment before the block says: `<!-- not run: it needs an account -->`. */
  notRun?: string
  /** What its output has to match, as comments after the block say: `<!-- prints: exit code 0 -->`. */
  prints: RegExp[]
}

/** One Markdown file. */
export interface Page {
  /** Relative to the repository. */
  file: string
  text: string
  blocks: Block[]
  /** Targets of its links, without those in code. */
  links: string[]
  /** Anchors of its headings, as GitHub makes them. */
  anchors: string[]
}

/** Every Markdown file of the repository that people read. */
export function listPages(): Page[] {
  const patterns = ['*.md', '{docs,examples,scripts,src,plugins}/**/*.md']
  return patterns
    .flatMap(pattern => [...new Bun.Glob(pattern).scanSync(root)])
    .filter(file => !file.includes('node_modules'))
    .sort()
    .map(readPage)
}

export function readPage(file: string): Page {
  const text = readFileSync(join(root, file), 'utf8')
  const prose = text.replaceAll(/^```[\s\S]*?^```$/gm, '')
  const headings = [...prose.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading)
  const links = [...prose.replaceAll(/`[^`\n]*`/g, '').matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
  return { file, text, blocks: readBlocks(text), links, anchors: headings.map(toAnchor) }
}

function readBlocks(text: string): Block[] {
  const fences = text.matchAll(
    /(?:^<!-- not run: ([^\n]*) -->\n+)?^```([^\n]*)\n([\s\S]*?)^```$((?:\n<!-- prints: [^\n]* -->)*)/gm,
  )
  return [...fences].map(({ 0: whole, 1: notRun, 2: info = '', 3: code = '', 4: expected = '', index }) => {
    const [language = '', ...label] = info.split(' ')
    const line = text.slice(0, index + whole.indexOf('```')).split('\n').length
    const prints = [...expected.matchAll(/<!-- prints: (.*) -->/g)].map(([, pattern = '']) => new RegExp(pattern, 'm'))
    return { language, label: label.join(' '), code, line, prints, ...(notRun && { notRun }) }
  })
}

const toAnchor = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')
