import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { Answer } from './client.ts'

type Api = { paths: Record<string, Record<string, { responses: Record<string, any> }>>; components: object }

/** Throws when an answer is not one that the API's description has. Made once a server. */
export function createDescription(api: Api): (method: string, path: string, answer: Answer) => void {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'api', components: api.components })
  const patterns = Object.keys(api.paths)
    // A path with fewer variables is meant first: /agents/deploy is no slug.
    .sort((one, other) => one.split('{').length - other.split('{').length)
    .map(path => ({ path, pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}/?$`) }))
  const checks = new Map<object, ValidateFunction>()
  const problemOf = (schema: object, value: unknown) => {
    const text = JSON.stringify(schema).replaceAll('"#/components/', '"api#/components/')
    const check = checks.get(schema) ?? ajv.compile(JSON.parse(text))
    checks.set(schema, check)
    return check(value) ? undefined : ajv.errorsText(check.errors)
  }

  return (method, path, { status, headers, body }) => {
    const { pathname } = new URL(path, 'http://localhost')
    const found = patterns.find(({ pattern }) => pattern.test(pathname))
    const operation = found && api.paths[found.path]?.[method.toLowerCase()]
    // What is no route of the API, and refusals that are the same for every path, are not described by it.
    if (!operation || found.path.endsWith('/{path}') || ['not_found', 'method_not_allowed'].includes(body?.error?.code))
      return
    const where = `${method} ${found.path} ${status}`
    const response = operation.responses[status]
    if (!response) throw new Error(`${where} is not described: ${JSON.stringify(body)?.slice(0, 300)}`)
    const type = headers.get('content-type')?.split(';')[0] ?? ''
    const content = response.content?.[type]
    if (!content && (response.content || body !== ''))
      throw new Error(`${where} is described without ${type || 'content'}`)
    const problem = type === 'application/json' && problemOf(content.schema, body)
    if (problem) throw new Error(`${where} is not as it is described: ${problem}`)
  }
}
