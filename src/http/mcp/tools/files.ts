import { Type } from '@sinclair/typebox'
import { bounds } from '../../../bounds.ts'
import { objectsOf } from '../../../read/json.ts'
import { AbsolutePath, NO_NUL } from '../../schema.ts'
import { askJson, assertDone } from '../ask.ts'
import { createBoundedText } from '../bounded-text.ts'
import { readLines } from '../read-lines.ts'
import { type Tool, tool } from '../tool.ts'
import { DEFAULT_CHARACTERS, MaxCharacters, SandboxId } from './fields.ts'

const Read = Type.Object({
  sandboxId: SandboxId,
  path: AbsolutePath,
  line: Type.Optional(Type.Integer({ minimum: 1, maximum: 1e9, description: 'First line to give; default 1.' })),
  lines: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000, description: 'How many lines; default 2000.' })),
  maxCharacters: Type.Optional(MaxCharacters),
})

const Write = Type.Object({
  sandboxId: SandboxId,
  path: AbsolutePath,
  content: Type.String({ maxLength: bounds.bodyBytes, description: 'The whole of the file.' }),
})

const MAX_ENTRIES = 1000

const List = Type.Object({
  sandboxId: SandboxId,
  path: AbsolutePath,
  depth: Type.Optional(Type.Integer({ minimum: 1, maximum: 20, description: 'How deep; default 1.' })),
})

const Search = Type.Object({
  sandboxId: SandboxId,
  path: { ...AbsolutePath, description: 'File or directory to search in.' },
  pattern: Type.String({
    minLength: 1,
    maxLength: bounds.query,
    ...NO_NUL,
    description: 'Extended regular expression.',
  }),
  glob: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, ...NO_NUL, description: 'Only files of such names, as *.ts.' }),
  ),
  ignoreCase: Type.Optional(Type.Boolean()),
})

const MAX_MATCHES = 500
const SEARCH_CHARACTERS = 60_000
const SEARCH_MS = 60_000

/** Paths and patterns come in variables, so that the shell never reads them. */
const SEARCH = [
  'set -- -rnIE --exclude-dir=.git --exclude-dir=node_modules',
  'if [ -n "$SEARCH_GLOB" ]; then set -- "$@" --include="$SEARCH_GLOB"; fi',
  'if [ -n "$SEARCH_NO_CASE" ]; then set -- "$@" -i; fi',
  'grep "$@" -e "$SEARCH_PATTERN" -- "$SEARCH_PATH" | cut -c -400 | head -n "$SEARCH_LINES"',
].join('\n')

export const fileTools: readonly Tool[] = [
  tool({
    name: 'read_file',
    title: 'Read a file',
    description: 'Reads lines of a text file in a sandbox.',
    input: Read,
    isReadOnly: true,
    async run({ sandboxId, path, line = 1, lines = 2000, maxCharacters = DEFAULT_CHARACTERS }, { ask, signal }) {
      const query = new URLSearchParams({ path, format: 'stream' })
      const question = { method: 'GET', path: `/v1/sandboxes/${sandboxId}/files?${query}`, signal } as const
      const { body } = await assertDone(await ask(question))
      const read = await readLines(body ?? [], { line, lines, characters: maxCharacters })
      const { content, nextLine } = read
      const note = nextLine === undefined ? '' : `\n[more follows: read on with line ${nextLine}]`
      return { text: `${content}${note}`, structured: { path, content, nextLine: nextLine ?? null } }
    },
  }),
  tool({
    name: 'write_file',
    title: 'Write a file',
    description: 'Writes a file in a sandbox, with its directories. What the file had is replaced.',
    input: Write,
    isDestructive: true,
    async run({ sandboxId, path, content }, { ask, signal }) {
      const body = { files: [{ path, content }] }
      const answer = await askJson(ask, { method: 'POST', path: `/v1/sandboxes/${sandboxId}/files`, body, signal })
      const [{ size } = { size: undefined }] = objectsOf(answer?.files)
      return { text: `Wrote ${size} bytes to ${shown(path)}.`, structured: { path, size } }
    },
  }),
  tool({
    name: 'list_files',
    title: 'List files',
    description: `Lists a directory of a sandbox: up to ${MAX_ENTRIES} entries.`,
    input: List,
    isReadOnly: true,
    async run({ sandboxId, path, depth = 1 }, { ask, signal }) {
      const query = new URLSearchParams({ path, depth: String(depth) })
      const answer = await askJson(ask, {
        method: 'GET',
        path: `/v1/sandboxes/${sandboxId}/files/list?${query}`,
        signal,
      })
      const all = objectsOf(answer?.entries ?? answer?.items)
      const entries = all
        .slice(0, MAX_ENTRIES)
        .map(({ path, type, size, modifiedTime }) => ({ path, type, size, modifiedTime }))
      const lines = entries.map(({ path, type, size }) => `${shown(String(path))}${type === 'dir' ? '/' : ` ${size}`}`)
      const truncated = all.length > entries.length
      if (truncated) lines.push(`[${all.length - entries.length} more are left out]`)
      return { text: lines.join('\n') || 'Empty.', structured: { entries, truncated } }
    },
  }),
  tool({
    name: 'search_files',
    title: 'Search files',
    description: `Searches text files of a sandbox by grep, without .git and node_modules: up to ${MAX_MATCHES} lines as path:line:text.`,
    input: Search,
    isReadOnly: true,
    isLong: true,
    async run({ sandboxId, path, pattern, glob = '', ignoreCase = false }, { ask, signal }) {
      const envs = {
        SEARCH_PATH: path,
        SEARCH_PATTERN: pattern,
        SEARCH_GLOB: glob,
        SEARCH_NO_CASE: ignoreCase ? '1' : '',
        SEARCH_LINES: String(MAX_MATCHES + 1),
      }
      const body = { command: SEARCH, envs, timeoutMs: SEARCH_MS }
      const question = { method: 'POST', path: `/v1/sandboxes/${sandboxId}/exec`, body, signal } as const
      const answer = await askJson(ask, question)
      const found = String(answer?.stdout ?? '')
        .split('\n')
        .filter(line => line !== '')
      const text = createBoundedText(SEARCH_CHARACTERS)
      text.add(found.slice(0, MAX_MATCHES).join('\n'))
      const problem = String(answer?.stderr ?? '')
        .trim()
        .slice(0, 1000)
      const truncated = found.length > MAX_MATCHES || text.isCut
      const said = [text.text() || 'Nothing is found.', truncated ? '[more is left out]' : '', problem]
      return {
        text: said.filter(part => part !== '').join('\n'),
        structured: {
          matches: text
            .text()
            .split('\n')
            .filter(line => line !== ''),
          truncated,
          problem: problem || null,
        },
        ...(found.length === 0 && problem !== '' && { isError: true as const }),
      }
    },
  }),
]

/** A name with line breaks in it must not look like several lines of a list. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const shown = (path: string): string => (/[\u0000-\u001f\u007f\u2028\u2029]/.test(path) ? JSON.stringify(path) : path)
