import type { Flag } from '../../read/arguments.ts'
import { idsAlone, json, place, quiet } from '../common-flags.ts'
import type { Command } from './command.ts'

const passphraseFile: Flag = {
  name: 'passphrase-file',
  value: 'FILE',
  default: 'THREADBOX_BACKUP_PASSPHRASE',
  help: 'the passphrase; better than the variable',
}

const identity: Flag = { name: 'identity', value: 'FILE', help: 'private keys of age', repeats: true }

/** Commands that make, check and restore backups. */
export const backupCommands: readonly Command[] = [
  {
    name: 'backup create',
    operands: 'FILE|DIR|s3://…',
    help: 'back up the data directory, beside a running server or without one',
    more:
      'In the backup: the database, its key file, bundles, bases, and the files of sandboxes on nsjail. Keys of S3 are AWS_ACCESS_KEY_ID and ' +
      'AWS_SECRET_ACCESS_KEY, with AWS_REGION or AWS_ENDPOINT. Exit code: 0, 1 also when the files of a sandbox could not be saved.',
    flags: [
      {
        name: 'sandboxes',
        value: 'IDS',
        default: 'all',
        help: 'all, none, or ids by comma: whose files',
        repeats: true,
      },
      { name: 'recipient', value: 'KEY', help: 'encrypt for this public key of age (age1…)', repeats: true },
      passphraseFile,
      { name: 'keep', value: 'N', help: 'afterwards, remove all but the newest N' },
      {
        name: 'keep-days',
        value: 'N',
        help: 'afterwards, remove those older than N days; with --keep, what neither keeps',
      },
      json,
      quiet,
    ],
    settings: place,
    examples: [
      'threadbox backup create /backups --keep 7',
      'threadbox backup create s3://bucket/threadbox --recipient age1…',
    ],
  },
  {
    name: 'backup list',
    operands: 'DIR|s3://…',
    help: 'list backups',
    flags: [json, idsAlone],
    examples: ['threadbox backup list /backups'],
  },
  {
    name: 'backup verify',
    operands: 'FILE',
    help: 'restore a backup into a temporary directory, and check all of it',
    flags: [
      passphraseFile,
      identity,
      { name: 'temporary', value: 'DIR', default: 'TMPDIR', help: 'where there is room for it' },
      json,
      quiet,
    ],
    examples: ['threadbox backup verify /backups/threadbox-backup-2026-01-31T04-00-00-000Z.tar.zst'],
  },
  {
    name: 'backup restore',
    operands: 'FILE',
    help: 'make a new data directory of a backup',
    flags: [passphraseFile, identity, json, quiet],
    settings: place,
    examples: [
      'threadbox backup restore threadbox-backup-2026-01-31T04-00-00-000Z.tar.zst --data-dir /var/lib/threadbox',
    ],
  },
]
