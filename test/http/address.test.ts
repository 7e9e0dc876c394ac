import { describe, expect, test } from 'bun:test'
import { findAddress } from '../../src/http/address.ts'
import { parseRange, withoutMapping } from '../../src/read/addresses.ts'
import { useApp } from '../support/app.ts'

const app = useApp(['--trusted-proxies', '127.0.0.1,10.0.0.0/8'])

const find = (socketAddress: string | undefined, forwardedFor: string | null, ...trusted: string[]) =>
  findAddress(
    { socketAddress, forwardedFor },
    trusted.map(text => withoutMapping(parseRange(text)!)),
  )

describe('the address of a caller', () => {
  const cases: [string, string | undefined, string | null, string[], string | undefined][] = [
    ["is the connection's", '192.0.2.1', null, [], '192.0.2.1'],
    ['is unknown when the connection is gone', undefined, '192.0.2.1', ['10.0.0.1'], undefined],
    ['is no IPv6 address when it is one of IPv4 within IPv6', '::ffff:192.0.2.1', null, [], '192.0.2.1'],
    ['is in the shortest form of IPv6', '2001:0DB8:0:0::0:1', null, [], '2001:db8::1'],
    ['has no interface', 'fe80::1%eth0', null, [], 'fe80::1'],
    ['is not what the caller says', '192.0.2.1', '198.51.100.1', [], '192.0.2.1'],
    ['is not what a proxy says that is not trusted', '192.0.2.1', '198.51.100.1', ['10.0.0.0/8'], '192.0.2.1'],
    ['is what a trusted proxy has seen', '10.0.0.1', '198.51.100.1', ['10.0.0.0/8'], '198.51.100.1'],
    ['is not what stands before that', '10.0.0.1', '1.1.1.1, 198.51.100.1', ['10.0.0.0/8'], '198.51.100.1'],
    ['is no trusted proxy', '10.0.0.1', '1.1.1.1,198.51.100.1 , 10.9.9.9', ['10.0.0.0/8'], '198.51.100.1'],
    ['is the first proxy when all are trusted', '10.0.0.1', '10.0.0.3, 10.0.0.2', ['10.0.0.0/8'], '10.0.0.3'],
    ["is the proxy's without the header", '10.0.0.1', null, ['10.0.0.0/8'], '10.0.0.1'],
    ["is the proxy's with an empty header", '10.0.0.1', '', ['10.0.0.0/8'], '10.0.0.1'],
    ['is of IPv6', '::1', '2001:DB8::0:1', ['::1'], '2001:db8::1'],
    ['may have a port', '10.0.0.1', '198.51.100.1:443', ['10.0.0.1'], '198.51.100.1'],
    ['may have brackets and a port', '10.0.0.1', '[2001:db8::1]:443', ['10.0.0.1'], '2001:db8::1'],
    ['is seen by a proxy within IPv6', '::ffff:10.0.0.1', '::ffff:198.51.100.1', ['10.0.0.1'], '198.51.100.1'],
    [
      'is seen by a proxy whose CIDR is within IPv6',
      '10.0.0.1',
      '198.51.100.1',
      ['::ffff:10.0.0.0/104'],
      '198.51.100.1',
    ],
  ]
  test.each(cases)('%s', (_, socket, header, trusted, expected) => {
    expect(find(socket, header, ...trusted)).toBe(expected)
  })

  const malformed = [
    'unknown',
    '_hidden',
    '1.2.3',
    '1.2.3.4.5',
    '999.1.1.1',
    '0x7f.0.0.1',
    '1.2.3.4/8',
    '"1.2.3.4"',
    '[::1',
    ':::1',
  ]
  test.each([
    ...malformed,
    'for=1.2.3.4',
    '1.2.3.4:123456',
    '1.2.3.4;2.3.4.5',
    '1.2.3.4 2.3.4.5',
    '::1::2',
    '\u0000',
    ',',
    ' ',
  ])('is the last proxy that is known before the hop %j', hop => {
    expect(find('10.0.0.1', `1.1.1.1, ${hop}`, '10.0.0.0/8')).toBe('10.0.0.1')
    expect(find('10.0.0.1', `1.1.1.1, ${hop}, 10.0.0.2`, '10.0.0.0/8')).toBe('10.0.0.2')
  })

  test('ends at a trusted proxy when there are more of them than a server has: a header costs no more for its length', () => {
    const header = `198.51.100.1${', 10.0.0.2'.repeat(50_000)}`
    expect(find('10.0.0.1', header, '10.0.0.0/8')).toBe('10.0.0.2')
  })
})

test('a refused authentication is logged with the address that the proxy has seen', async () => {
  const refuse = (headers: Record<string, string>) => app.ask('GET', '/v1/me', undefined, { key: null, headers })
  await refuse({ 'x-forwarded-for': '198.51.100.7, 203.0.113.9, 10.1.2.3' })
  await refuse({ 'x-forwarded-for': '203.0.113.9, nonsense' })
  const lines = app.log.filter(line => line.startsWith('unauthorized: '))
  expect(lines.map(line => line.split(': ')[1])).toEqual(['203.0.113.9', '127.0.0.1'])
})
