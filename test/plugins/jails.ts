import { createNsjailBackend } from '../../plugins/nsjail/index.ts'
import type { Plugin } from '../../src/plugin-api/index.ts'

/** A backend as a plugin has it, with many files of its own: the jails of this source tree. */
export default {
  name: 'jails',
  backend: context => ({
    ...createNsjailBackend({
      ...context,
      dataDirectory: `${context.dataDirectory}/jails`,
      nsjailPath: new URL('../../.cache/nsjail/bin/nsjail', import.meta.url).pathname,
    }),
    name: 'jails',
  }),
} satisfies Plugin
