import { expect, test } from 'bun:test'
import { matchesPath, mayGo } from '../../../src/egress/secrets/reach.ts'

const goes = (paths: string[] | undefined, path: string, method = 'GET', methods?: string[]) =>
  mayGo({ ...(paths && { paths }), ...(methods && { methods }) }, { method, path, headers: [] })

test.each([
  ['/repos/**', '/repos/o/r', true],
  ['/repos/**', '/repos/', true],
  ['/repos/**', '/repos', false],
  ['/repos/**', '/repos/o/r?x=/user', true],
  ['/repos/*', '/repos/o', true],
  ['/repos/*', '/repos/o/r', false],
  ['/repos/acme-*/issues', '/repos/acme-one/issues', true],
  ['/repos/acme-*/issues', '/repos/other/issues', false],
  ['/**', '/anything/at/all', true],
  ['/a b/*', '/a%20b/c', true],
  ['/repos/**', '/REPOS/o', false],
])('%s and %s', (pattern, path, expected) => {
  expect(goes([pattern], path)).toBe(expected)
})

test.each([
  [{ headers: [{ name: { exact: 'X-Kind' } }] }, true],
  [{ headers: [{ name: { startsWith: 'X-' }, value: { exact: 'model' } }] }, true],
  [{ headers: [{ value: { startsWith: 'mod' } }] }, true],
  [{ headers: [{ name: { exact: 'x-other' }, value: { exact: 'model' } }] }, false],
  [{ headers: [{ name: { exact: 'x-kind' } }, { name: { exact: 'x-none' } }] }, false],
  [{ headers: [{ value: { exact: 'Model' } }] }, false],
  [{ query: [{ name: { exact: 'a' }, value: { exact: '1 2' } }] }, true],
  [{ query: [{ name: { exact: 'A' } }] }, false],
  [{ headers: [{ name: { exact: 'x-kind' } }], query: [{ name: { exact: 'none' } }] }, false],
  [{}, true],
])('%j', (when, expected) => {
  const headers = [
    ['x-kind', 'model'],
    ['x-other', '1'],
  ] as const
  expect(mayGo({ when }, { method: 'GET', path: '/x?a=0&a=1%202', headers })).toBe(expected)
})

test.each([
  '/repos/../user',
  '/repos/o/..',
  '/repos/./o',
  '/repos/%2e%2e/user',
  '/repos/%2E%2e/user',
  '/repos/.%2e/user',
  '/repos/..%2fuser',
  '/repos/..%2Fuser',
  '/repos%2f..%2fuser',
  '/repos/%252e%252e/user',
  '/repos/%25252e%25252e%25252fuser',
  '/repos/..;/user',
  '/repos/..;x=y/user',
  '/repos//user',
  '//repos/user',
  '/repos/\\..\\user',
  '/repos/%5c..%5cuser',
  '/repos/%00/../user',
  '/repos/%0a',
  '/repos/%',
  '/repos/%ff',
  '/repos/%2',
  '/user#/repos/x',
  '/user/%2e%2e/repos/x',
  '*',
])('the path %s does not widen what a secret may do: regression', path => {
  expect(goes(['/repos/**'], path)).toBe(false)
})

test('an encoded slash fits a pattern only when it does both as a slash and as part of its segment', () => {
  expect(goes(['/projects/**'], '/projects/group%2Fname/issues')).toBe(true)
  expect(goes(['/projects/*/issues'], '/projects/group%2Fname/issues')).toBe(false)
})

test('methods narrow, and headers by which servers take another do not get around them: regression', () => {
  expect(goes(undefined, '/x', 'POST', ['GET'])).toBe(false)
  expect(goes(undefined, '/x', 'get', ['GET'])).toBe(false)
  expect(goes(undefined, '/x', 'GET', ['GET'])).toBe(true)
  for (const name of ['x-http-method-override', 'x-original-url', 'x_http_method_override', 'x-http_method-override']) {
    const request = { method: 'GET', path: '/x', headers: [[name, 'DELETE']] as const }
    expect(mayGo({ methods: ['GET'] }, request)).toBe(false)
    expect(mayGo({ paths: ['/x'] }, request)).toBe(false)
    expect(mayGo({}, request)).toBe(true)
  }
  for (const query of ['_method=DELETE', 'a=1&_METHOD=delete', 'a;_method=put', '%5fmethod=put', '_method[]=put']) {
    expect(goes(undefined, `/x?${query}`, 'POST', ['POST'])).toBe(false)
    expect(goes(undefined, `/x?${query}`, 'POST')).toBe(true)
  }
  expect(goes(undefined, '/x?payment_method=card&q=_method', 'POST', ['POST'])).toBe(true)
})

test('a request that servers repeat as their answer gets no secret', () => {
  expect(goes(undefined, '/x', 'TRACE')).toBe(false)
  expect(goes(undefined, '/x', 'trace')).toBe(false)
})

test('a pattern of many stars takes time by its length: regression', () => {
  const startedAt = performance.now()
  expect(matchesPath(`/${'*a'.repeat(200)}`, `/${'a'.repeat(20_000)}b`)).toBe(false)
  expect(matchesPath(`/${'**a'.repeat(200)}`, `/${'a/'.repeat(10_000)}b`)).toBe(false)
  expect(performance.now() - startedAt).toBeLessThan(20_000)
})
