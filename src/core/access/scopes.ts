import { ApiError } from '../../errors.ts'
import type { Scope } from '../../model/scope.ts'
import type { Caller } from './caller.ts'

/** Throws forbidden unless the caller's key, or the key that made its token, has one of these scopes. `admin` stands for all. */
export function assertScope({ scopes }: Caller, wanted: readonly Scope[]): void {
  if (!scopes || scopes.includes('admin') || wanted.some(scope => scopes.includes(scope))) return
  throw new ApiError(
    'forbidden',
    `The key lacks the scope for this: it has ${scopes.join(', ')}, not ${wanted.join(' or ')}.`,
  )
}
