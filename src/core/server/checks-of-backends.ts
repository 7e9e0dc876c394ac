import type { Check } from '../../plugin-api/index.ts'
import type { Config } from '../config.ts'

/**
 * Turns one backend's checks into the server's: a backend that is not the default is not required, since the server runs without
 * it.
 */
export const ofServer = (
  { backend, backends }: Pick<Config, 'backend' | 'backends'>,
  name: string,
  checks: readonly Check[],
): Check[] =>
  checks.map(check => ({
    ...check,
    name: backends.length > 1 ? `${name}: ${check.name}` : check.name,
    required: check.required && name === backend,
  }))
