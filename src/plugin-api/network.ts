/**
 * What an environment may reach. Each layer must allow an address; a layer without `allowOut` allows every public one.
 *
 * @example
 * const packagesOnly: NetworkSpec = { mode: 'public', layers: [{ allowOut: ['packages.example.com'] }] }
 */
export interface NetworkSpec {
  mode: 'public' | 'none'
  layers: readonly { allowOut?: readonly string[]; denyOut?: readonly string[] }[]
}
