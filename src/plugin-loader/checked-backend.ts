import { ApiError } from '../errors.ts'
import type { Backend, Check, Environment } from '../plugin-api/index.ts'
import { objectOf } from '../read/json.ts'
import { findShapeProblems } from './shape.ts'

/** Wraps a plugin's backend and checks what its methods return. A wrong value throws sandbox_unavailable that says what is wrong. */
export function checkedBackend(backend: Backend): Backend {
  const wrong = (method: string, problem: string) =>
    new ApiError('sandbox_unavailable', `The backend ${backend.name} is broken: ${method}() ${problem}.`)
  const environmentOf = (method: string, given: unknown, id: string): Environment => {
    const missing = findShapeProblems('environment', given)
    if (missing) throw wrong(method, `does not give an environment: ${missing}`)
    const environment = given as Environment
    if (environment.id !== id) throw wrong(method, `gives an environment other than ${id}`)
    return environment
  }
  const checked: Pick<Backend, 'check' | 'create' | 'open' | 'list'> = {
    async check() {
      const checks: unknown = await backend.check()
      if (!Array.isArray(checks) || !checks.every(isCheck)) throw wrong('check', 'does not give a list of checks')
      return checks
    },
    create: async spec => environmentOf('create', await backend.create(spec), spec.id),
    async open(id) {
      const found = await backend.open(id)
      return found === undefined ? undefined : environmentOf('open', found, id)
    },
    async list() {
      const ids: unknown = await backend.list()
      if (!Array.isArray(ids) || !ids.every(id => typeof id === 'string'))
        throw wrong('list', 'does not give a list of ids')
      return ids
    },
  }
  return new Proxy(backend, {
    get(target, key) {
      if (Object.hasOwn(checked, key)) return Reflect.get(checked, key)
      const value: unknown = Reflect.get(target, key)
      // Its methods may use private fields, which only the target itself has.
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

function isCheck(value: unknown): value is Check {
  const { name, ok, required, detail, remedy = '' } = objectOf(value) ?? {}
  const texts = [name, detail, remedy].every(each => typeof each === 'string')
  return texts && typeof ok === 'boolean' && typeof required === 'boolean'
}
