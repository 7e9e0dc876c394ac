import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { bash } from '../support/agent-server.ts'
import { patiently } from '../support/server.ts'
import { type Block, listPages, root } from './page.ts'
import { openSession, type Session } from './session.ts'

patiently()

const pages = listPages()

/** Pictures and output are no examples. */
const isExample = ({ language }: Block) => !['text', 'mermaid'].includes(language)
const isShell = ({ language }: Block) => language === 'sh'
/** A block whose label is the name of a file is that file. */
const isFile = ({ label }: Block) => /\.\w+$/.test(label)

/** What the model answers on a page where its words are not enough. */
const play: Record<string, (model: Session['model']) => void> = {
  'README.md': model =>
    model.play(
      { calls: [bash('echo "print(2, 3, 5)" > primes.py && python3 primes.py')] },
      { text: 'It prints them.' },
      { calls: [bash('mkdir work && echo 2 3 5 > work/primes.txt')] },
      { text: 'They are in work/primes.txt.' },
    ),
  'docs/approvals.md': model => model.play({ calls: [bash('echo made > note')] }, { text: 'I made it.' }),
}

/** The page's blocks in their order, as a reader would follow them. */
async function follow(session: Session, { file, blocks }: (typeof pages)[number]): Promise<void> {
  play[file]?.(session.model)
  for (const block of blocks.filter(each => isExample(each) && !each.notRun)) {
    const { label, code, line, prints } = block
    try {
      if (isFile(block)) session.write(label, code)
      else if (label === 'serve') await session.serve(code)
      else {
        const output = await session.run(code)
        for (const pattern of prints) expect(output).toMatch(pattern)
      }
    } catch (error) {
      throw new Error(`${file}:${line}: ${error instanceof Error ? error.message : error}\n${code}`)
    }
  }
}

describe.each(pages)('$file', page => {
  const { file, blocks } = page
  const examples = blocks.filter(isExample)

  test('has no example that is neither run nor excused', () => {
    const run = examples.filter(block => !block.notRun)
    const idle = run.filter(block => {
      if (isShell(block)) return block.label !== '' && block.label !== 'serve'
      const [directory = ''] = block.label.split('/')
      const users = run.slice(run.indexOf(block) + 1).filter(isShell)
      return !isFile(block) || !users.some(({ code }) => code.includes(directory))
    })
    expect(idle.map(({ line, language }) => `${file}:${line}: ${language}`)).toEqual([])
  })

  test('names only tests that are there, where it excuses an example', () => {
    const named = examples.flatMap(({ notRun = '' }) => notRun.match(/\btest\/[\w./-]*\w/g) ?? [])
    expect(named.filter(path => !existsSync(join(root, path)))).toEqual([])
  })

  if (examples.some(block => !block.notRun))
    test('is true when it is followed', async () => {
      await using session = openSession()
      await follow(session, page)
    }, 120_000)
})
