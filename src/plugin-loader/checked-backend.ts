import { ApiError } from '../errors.ts'
import type { Backend, Check, Environment } from '../plugin-api/index.ts'
import { objectOf } from '../read/json.ts'
import { whatIsMissing } from './shape.ts'

/** A foreign backend, with what its methods give checked. What does not fit is sandbox_unavailable, and says why. */
export function checkedBackend(backend: Backend): Backend {
  const wrong = (method: string, problem: string) =>
    new ApiError('sandbox_unavailable', `The backend ${backend.name} does not do as it should: ${method}() ${problem}.`)
  const environmentOf = (method: string, given: unknown, id: string): Environment => {
    const missing = whatIsMissing('environment', given)
    if (missing) throw wrong(method, `gives no environment: ${missing}`)
    const environment = given as Environment
    if (environment.id !== id) throw wrong(method, `gives another environment than ${id}`)
    return environment
  }
  const checked: Pick<Backend, 'check' | 'create' | 'open' | 'list'> = {
    async check() {
      const checks: unknown = await backend.check()
      if (!Array.isArray(checks) || !checks.every(isCheck)) throw wrong('check', 'gives no list of checks')
      return checks
    },
    create: async spec => environmentOf('create', await backend.create(spec), spec.id),
    async open(id) {
      const found = await backend.open(id)
      return found === undefined ? undefined : environmentOf('open', found, id)
    },
    async list() {
      const ids: unknown = await backend.list()
      if (!Array.isArray(ids) || !ids.every(id => typeof id === 'string')) throw wrong('list', 'gives no list of ids')
      return ids
    },
  }
  return new Proxy(backend, {
    get(target, key) {
      if (Object.hasOwn(checked, key)) return Reflect.get(checked, key)
      const value: unknown = Reflect.get(target, key)
      // Its own methods may have private fields.
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

function isCheck(value: unknown): value is Check {
  const { name, ok, required, detail, remedy = '' } = objectOf(value) ?? {}
  const texts = [name, detail, remedy].every(each => typeof each === 'string')
  return texts && typeof ok === 'boolean' && typeof required === 'boolean'
}
