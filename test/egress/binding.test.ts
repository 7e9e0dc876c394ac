import { expect, test } from 'bun:test'
import { type BoundSecret, bindingsFor } from '../../src/egress/secrets/binding.ts'

const bound = (name: string, ...hosts: string[]): BoundSecret => ({
  name,
  hosts,
  as: { header: 'authorization' },
  value: () => 'value',
})

const all = [
  bound('EXACT', 'example.com'),
  bound('BELOW', '*.example.com'),
  bound('PORT', 'example.com:8443'),
  bound('PORTS', 'other.test:8000-8100', 'more.test'),
]

const namesFor = (name: string, port: number) => bindingsFor(all, name, port).map(each => each.name)

test('a secret is for its hosts at port 443, unless the host names ports', () => {
  expect(namesFor('example.com', 443)).toEqual(['EXACT'])
  expect(namesFor('example.com', 80)).toEqual([])
  expect(namesFor('example.com', 8443)).toEqual(['PORT'])
  expect(namesFor('other.test', 8080)).toEqual(['PORTS'])
  expect(namesFor('other.test', 443)).toEqual([])
  expect(namesFor('more.test', 443)).toEqual(['PORTS'])
})

test('a secret of all subdomains is for no name that only ends alike', () => {
  expect(namesFor('api.example.com', 443)).toEqual(['BELOW'])
  expect(namesFor('a.b.example.com', 443)).toEqual(['BELOW'])
  expect(namesFor('badexample.com', 443)).toEqual([])
  expect(namesFor('example.com.bad.test', 443)).toEqual([])
})

test('an address has no secret', () => {
  expect(namesFor('203.0.113.5', 443)).toEqual([])
  expect(namesFor('fd00::5', 443)).toEqual([])
})
