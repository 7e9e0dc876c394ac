import type { Database } from 'bun:sqlite'
import { findAgent, saveAgent } from '../../db/agents.ts'
import { inTransaction } from '../../db/open.ts'
import { findSetting, saveSetting } from '../../db/settings.ts'
import { filesOf, findActive, saveVersion } from './versions.ts'

/** What `coder` was last given here: any other model in it is its owner's choice. */
const SETTING = 'coder_model'

/**
 * Has an agent `coder` stand ready with a model. One that the user applied stays as it is, but for its model when that was
 * asked for at start. Does nothing without a model.
 */
export function ensureCoder(db: Database, teamId: string, model: string | undefined, isAsked: boolean): void {
  if (model === undefined) return
  inTransaction(db, () => {
    const found = findAgent(db, teamId, 'coder')
    if (found && found.engine !== 'ai-sdk') return
    if (found && !isAsked && found.model !== findSetting(db, SETTING)) return
    const sandbox = { files: {}, envs: {}, setup: [], limits: {} }
    const coder = found ?? { slug: 'coder', name: 'Coder', engine: 'ai-sdk', sandbox, options: {} }
    const active = found && findActive(db, found)
    if (active && found.model !== model)
      saveVersion(db, teamId, { ...found, model }, { ...filesOf(active), madeBy: 'apply' })
    else if (found?.model !== model) saveAgent(db, teamId, { ...coder, model })
    saveSetting(db, SETTING, model)
  })
}
