import type { BoundSecret } from '../../egress/secrets/binding.ts'

/** Secrets for one operation each, which only programs that have its pass can use. */
export interface Loans {
  /** Lends a secret until the result is disposed of. */
  lend(environmentId: string, secret: BoundSecret): Disposable & { pass: string }
  /** Finds the secret of a pass that was given for this environment. */
  find(environmentId: string, pass: string | undefined): BoundSecret | undefined
}

export function createLoans(): Loans {
  const loans = new Map<string, { environmentId: string; secret: BoundSecret }>()
  return {
    lend(environmentId, secret) {
      const pass = crypto.randomUUID()
      const value = () => {
        if (!loans.has(pass)) throw new Error('what it was lent for has ended')
        return secret.value()
      }
      loans.set(pass, { environmentId, secret: { ...secret, value } })
      return { pass, [Symbol.dispose]: () => void loans.delete(pass) }
    },
    find(environmentId, pass) {
      const loan = pass === undefined ? undefined : loans.get(pass)
      return loan?.environmentId === environmentId ? loan.secret : undefined
    },
  }
}
