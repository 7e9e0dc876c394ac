import { createKeyedLock } from '../../async/lock.ts'
import type { BoundSecret } from '../../egress/secrets/binding.ts'
import { withMembers } from '../../environment/with-members.ts'
import { messageOf } from '../../errors.ts'
import { placeholdersOf } from '../../model/secret.ts'
import type { Environment, SpawnOptions } from '../../plugin-api/index.ts'
import type { Log, Trust } from '../runtime.ts'
import { KNOWN_HOSTS_FILE, knownHostsOf } from './known-hosts.ts'
import { createLoans } from './loans.ts'
import { trustVariables } from './variables.ts'

export interface TrustParts {
  /** The secrets that a sandbox may use now. */
  secretsOf(environmentId: string): readonly BoundSecret[]
  /** The PEM certificate of the authority that ends TLS for hosts with secrets. Without it, TLS is not ended. */
  certificatePem?(): Promise<string>
  log: Log
}

/** Prepares environments for their secrets. An environment without secrets is not changed. */
export function createTrust({ secretsOf, certificatePem, log }: TrustParts): Trust {
  const loans = createLoans()
  /** The certificate that each environment trusts, as far as this server has checked since its start. */
  const seen = new Map<string, string>()
  /** The SSH hosts that were written into each environment. */
  const known = new Map<string, string>()
  const inTurn = createKeyedLock()

  /** Each environment that has the variables of its secrets, as it is without them: what is put into it is put by that. */
  const bare = new WeakMap<Environment, Environment>()

  const put = (environment: Environment, bound = secretsOf(environment.id)) =>
    inTurn(environment.id, async () => {
      const { id, files } = environment
      const hosts = knownHostsOf(bound)
      if (hosts !== (known.get(id) ?? '')) {
        await files.write(KNOWN_HOSTS_FILE, Buffer.from(hosts))
        known.set(id, hosts)
      }
      if (!certificatePem || !bound.some(isHttp)) return
      const authority = await certificatePem()
      if (seen.get(id) === authority) return
      const { putTrust } = await import('./put-trust.ts')
      await putTrust(environment, authority)
      seen.set(id, authority)
    })

  const tryToPut = async (environment: Environment) => {
    await put(environment).catch(error =>
      // A sandbox whose disk is full can still be used to make room.
      log(`${environment.id}: not all that its secrets need is there: ${messageOf(error)}`, 'error'),
    )
  }

  const openAgent = async (environment: Environment): Promise<Record<string, string>> => {
    try {
      const path = await environment.openSshAgent?.()
      return path === undefined ? {} : { SSH_AUTH_SOCK: path }
    } catch (error) {
      log(`${environment.id}: there is no SSH agent: ${messageOf(error)}`, 'error')
      return {}
    }
  }

  /** Returns the environment with the variables of its secrets added to those of every program. */
  const bind = (environment: Environment): Environment => {
    const { id, processes } = environment
    const withVariables = async <Options extends Pick<SpawnOptions, 'env'>>(options: Options): Promise<Options> => {
      await tryToPut(environment)
      const bound = secretsOf(id)
      const agent = bound.some(isSsh) ? await openAgent(environment) : {}
      return { ...options, env: { ...variablesOf(bound, certificatePem !== undefined), ...agent, ...options.env } }
    }
    const bound = withMembers(environment, {
      spawn: async options => await environment.spawn(await withVariables(options)),
      ...(processes && {
        processes: withMembers(processes, {
          start: async options => await processes.start(await withVariables(options)),
        }),
      }),
    })
    bare.set(bound, environment)
    return bound
  }

  return {
    async prepare(environment) {
      if (secretsOf(environment.id).length === 0) return environment
      await put(environment)
      return bind(environment)
    },
    install: (environment, bound) => put(bare.get(environment) ?? environment, bound),
    bind: environment => (secretsOf(environment.id).length === 0 ? environment : bind(environment)),
    secretsOf(environmentId, pass) {
      const lent = loans.find(environmentId, pass)
      return lent ? [lent] : secretsOf(environmentId)
    },
    async lend(environmentId, secret) {
      const authority = await certificatePem?.()
      return authority === undefined ? undefined : { ...loans.lend(environmentId, secret), authority }
    },
    forget(environmentId) {
      seen.delete(environmentId)
      known.delete(environmentId)
    },
  }
}

const isSsh = ({ as }: BoundSecret) => 'ssh' in as
const isHttp = (secret: BoundSecret) => !isSsh(secret)

function variablesOf(bound: readonly BoundSecret[], hasAuthority: boolean): Record<string, string> {
  return { ...(hasAuthority && bound.some(isHttp) && trustVariables), ...placeholdersOf(bound) }
}
