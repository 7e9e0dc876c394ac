import { describe, expect, test } from 'bun:test'
import SwaggerParser from '@apidevtools/swagger-parser'
import { Validator } from '@seriousme/openapi-schema-validator'
import { operations } from '../../../src/http/openapi/document.ts'
import { useApp } from '../../support/app.ts'

const app = useApp()
const describeApi = async () => (await app.ask('GET', '/v1/openapi.json')).body

/** Every operation with its method and path. */
function* operationsOf({ paths }: any): Generator<{ method: string; path: string; operation: any }> {
  for (const [path, methods] of Object.entries<any>(paths)) {
    for (const [method, operation] of Object.entries<any>(methods)) yield { method, path, operation }
  }
}

describe('the description of the API', () => {
  test('is valid for two validators', async () => {
    const api = await describeApi()
    expect(api.openapi).toBe('3.1.0')
    expect(await new Validator().validate(structuredClone(api))).toMatchObject({ valid: true })
    await SwaggerParser.validate(structuredClone(api))
  })

  test('says of every route what it answers, and what it may be refused with', async () => {
    const api = await describeApi()
    for (const { method, path, operation } of operationsOf(api)) {
      if (operation.operationId === 'showPreview') continue
      const where = `${method} ${path}`
      const statuses = Object.keys(operation.responses)
      expect([where, statuses.some(status => status < '300')]).toEqual([where, true])
      if (path.startsWith('/health')) continue
      expect([where, ...statuses]).toEqual(expect.arrayContaining([where, '401', '403', '429', '500', '503']))
      for (const [status, response] of Object.entries<any>(operation.responses)) {
        if (status < '400') continue
        // The Model Context Protocol has a form of its own for these.
        if (path === '/v1/mcp' && ['400', '404'].includes(status)) continue
        expect(response.content['application/json'].schema).toEqual({ $ref: '#/components/schemas/Error' })
        if (['429', '503'].includes(status)) expect(response.headers).toHaveProperty('retry-after')
      }
    }
  })

  test('describes no route that there is not', async () => {
    const described = [...operationsOf(await describeApi())].map(
      ({ method, path }) => `${method.toUpperCase()} ${path}`,
    )
    const known = Object.keys(operations).map(key => key.replaceAll(/:(\w+)/g, '{$1}'))
    expect(described.filter(each => !each.includes('{path}')).sort()).toEqual(known.sort())
  })

  test('names each operation once, and its parameters as its path does', async () => {
    const all = [...operationsOf(await describeApi())]
    const ids = all.map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { path, operation } of all) {
      const named = (operation.parameters ?? []).filter((each: any) => each.in === 'path').map((each: any) => each.name)
      expect(named.sort()).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!).sort())
    }
  })

  test('has only content types that the routes take', async () => {
    for (const { path, operation } of operationsOf(await describeApi())) {
      const types = Object.keys(operation.requestBody?.content ?? {})
      const raw = /\/(files|stdin)$/.test(path) ? ['application/octet-stream'] : []
      const wanted = path.endsWith('/deploy') ? ['multipart/form-data'] : ['application/json', ...raw]
      if (types.length > 0) expect([path, ...types]).toEqual([path, ...wanted])
    }
  })

  test('names where the server is seen from outside', async () => {
    expect((await describeApi()).servers).toEqual([{ url: '/' }])
  })
})
