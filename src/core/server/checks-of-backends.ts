import type { Check } from '../../plugin-api/index.ts'
import type { Config } from '../config.ts'

/** The checks of one of a server's backends, as those of the server: without a backend that is not the default it runs too. */
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
