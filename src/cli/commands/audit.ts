import { idsAlone, json, place } from '../common-flags.ts'
import type { Command } from './command.ts'

/** Commands that read the audit log in a data directory. */
export const auditCommands: readonly Command[] = [
  {
    name: 'audit list',
    help: 'list what was done, newest first',
    flags: [
      { name: 'team', value: 'TEAM', help: 'of this team alone' },
      { name: 'action', value: 'NAME', help: 'an action like key.created, or the first word of some, like key' },
      { name: 'since', value: 'TIME', help: 'not before it' },
      { name: 'until', value: 'TIME', help: 'before it' },
      { name: 'limit', value: 'N', default: '100', help: 'how many rows' },
      json,
      idsAlone,
    ],
    settings: place,
    examples: ['threadbox audit list --action key --since 2030-01-31'],
  },
  {
    name: 'audit verify',
    help: 'look whether rows were altered, removed, inserted or moved',
    more: 'Exit code: 0, or 1 with what is wrong.',
    flags: [
      {
        name: 'head',
        value: 'SEQ:HASH',
        help: 'what audit head has printed once, or the log of a server',
        repeats: true,
      },
      { name: 'file', value: 'FILE', help: 'look at an exported file, without a data directory' },
    ],
    settings: place,
    examples: ['threadbox audit verify'],
  },
  {
    name: 'audit export',
    help: 'print all rows as lines of JSON, oldest first',
    flags: [{ name: 'after', value: 'SEQ', help: 'those after this one' }],
    settings: place,
    examples: ['threadbox audit export > audit.jsonl'],
  },
  {
    name: 'audit head',
    help: 'print the number and hash of the last row, to be kept elsewhere',
    settings: place,
    examples: ['threadbox audit head'],
  },
]
