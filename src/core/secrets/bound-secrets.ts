import type { Database } from 'bun:sqlite'
import { findSecretValue } from '../../db/secrets.ts'
import type { BoundSecret } from '../../egress/secrets/binding.ts'
import type { KeptBinding } from '../../model/secret.ts'
import { findMisfit } from './bindings.ts'

/** A sandbox's bindings, as its way out uses them: each value is looked up in the team's secrets when it is used. */
export const boundSecretsOf = (db: Database, teamId: string, bindings: readonly KeptBinding[]): BoundSecret[] =>
  bindings.map(({ secret: name, ...binding }) => ({
    ...binding,
    name,
    value() {
      const value = findSecretValue(db, teamId, name)
      if (value === undefined) throw new Error(`the secret ${name} was removed`)
      const misfit = findMisfit(binding.as, value)
      if (misfit) throw new Error(`the secret ${name} does not fit: ${misfit}`)
      return value
    },
  }))
