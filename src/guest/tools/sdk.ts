import { z } from 'zod'

/**
 * What a bundle finds as `@21st-sdk/agent`: its bundler leaves that package to the runtime. Unlike the package's own
 * these fill in nothing, so that what an author did not choose is the server's choice.
 */
const tagged =
  (_type: 'agent' | 'tool' | 'sandbox') =>
  (definition: object = {}) => ({ _type, ...definition })

export const agent = tagged('agent')
export const tool = tagged('tool')
export const Sandbox = tagged('sandbox')
export { z }

/** The package as Bun finds it. Node finds it by a file beside the bundle. */
export function provideSdk(): void {
  if (typeof Bun === 'undefined') return
  Bun.plugin({
    name: 'agent-sdk',
    setup(build) {
      build.module('@21st-sdk/agent', () => ({ exports: { agent, tool, Sandbox, z }, loader: 'object' }))
    },
  })
}
