import type { Setting } from './setting.ts'
import { number, path } from './setting-values.ts'

const unitsMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const duration = (value: string) => {
  const [, count = '', unit = ''] = /^([1-9]\d{0,5})([smhd])$/.exec(value) ?? []
  const ms = Number(count) * (unitsMs[unit] ?? 0)
  if (!(ms > 0)) throw new Error('must be a time like 30m, 6h or 1d')
  return ms
}

const place = (value: string) => (value.startsWith('s3://') ? value : path(value))

const recipients = (value: string) =>
  value.split(',').map(each => {
    if (!/^age1[a-z0-9]+$/.test(each.trim())) throw new Error('must be public keys of age, as age1…')
    return each.trim()
  })

/** The settings of backups that the server makes by itself. */
export const backupSettings: readonly Setting[] = [
  { name: 'backup-every', value: 'TIME', help: 'make a backup so often, as 6h or 1d (never)', parse: duration },
  { name: 'backup-to', value: 'DIR|s3://…', help: 'where these backups go', parse: place },
  { name: 'backup-keep', value: 'N', help: 'how many of them stay (all)', parse: number(1) },
  { name: 'backup-keep-days', value: 'N', help: 'all of so many days stay; with backup-keep, both', parse: number(1) },
  {
    name: 'backup-recipient',
    value: 'KEYS',
    help: 'encrypt them for these public keys of age, by comma',
    parse: recipients,
    repeats: true,
  },
  { name: 'backup-passphrase-file', value: 'FILE', help: 'encrypt them by the passphrase in this file', parse: path },
]
