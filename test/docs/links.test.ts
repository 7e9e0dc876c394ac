import { expect, test } from 'bun:test'
import { existsSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { listPages, readPage, root } from './page.ts'

const pages = listPages()

test('every link between files leads somewhere, to a heading that is there', () => {
  const broken = pages.flatMap(({ file, links }) =>
    links
      .filter(target => !/^[a-z]+:/.test(target))
      .filter(target => {
        const [path = '', anchor] = target.split('#')
        const there = path === '' ? file : relative(root, join(root, dirname(file), path))
        if (!existsSync(join(root, there))) return true
        return anchor !== undefined && !readPage(there).anchors.includes(anchor)
      })
      .map(target => `${file}: ${target}`),
  )
  expect(broken).toEqual([])
  expect(pages.flatMap(({ links }) => links).length).toBeGreaterThan(50)
})

test('README leads to every page of docs', () => {
  const { links } = readPage('README.md')
  const docs = pages.map(({ file }) => file).filter(file => file.startsWith('docs/'))
  expect(docs.filter(file => !links.includes(file))).toEqual([])
  expect(docs.length).toBeGreaterThan(15)
})

test('README has at most 12 KB', () => {
  expect(statSync(join(root, 'README.md')).size).toBeLessThanOrEqual(12 * 1024)
})
