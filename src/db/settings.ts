import type { Database } from 'bun:sqlite'
import { mustLast } from './lasting.ts'

/** A stored setting, such as the key that signs tokens. */
export const findSetting = (db: Database, name: string): string | undefined =>
  db.query<{ value: string }, { name: string }>('select value from settings where name = $name').get({ name })?.value

/** Stores a setting, over what it was. */
export function saveSetting(db: Database, name: string, value: string): void {
  mustLast(db)
  db.query(
    'insert into settings (name, value) values ($name, $value) on conflict (name) do update set value = excluded.value',
  ).run({ name, value })
}
