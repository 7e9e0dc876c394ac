import { describe, expect, test } from 'bun:test'
import { embedsVersion4, isPublic, isWithin, parseAddress, parseRange } from '../../src/read/addresses.ts'

const address = (text: string) => {
  const parsed = parseAddress(text)
  if (!parsed) throw new Error(`not an address: ${text}`)
  return parsed
}

const notPublic: [string, string[]][] = [
  ['this network', ['0.0.0.0', '0.255.255.255', '::']],
  ['loopback', ['127.0.0.1', '127.255.255.255', '::1']],
  ['private', ['10.0.0.0', '10.255.255.255', '172.16.0.0', '172.31.255.255', '192.168.0.0', '192.168.255.255']],
  ['unique local', ['fc00::', 'fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff']],
  ['link-local', ['169.254.0.0', '169.254.255.255', 'fe80::', 'febf::1', 'fec0::1']],
  ['shared', ['100.64.0.0', '100.127.255.255']],
  ['metadata', ['169.254.169.254', 'fd00:ec2::254', '168.63.129.16', '100.100.100.200', '192.0.0.192']],
  ['multicast', ['224.0.0.1', '239.255.255.255', 'ff02::1']],
  ['reserved', ['240.0.0.0', '255.255.255.255', '198.18.0.1', '192.88.99.1']],
  ['reserved of version 6', ['100::1', '4000::1', '2001:2::1', '5f00::1']],
  ['documentation', ['192.0.2.1', '198.51.100.255', '203.0.113.0', '2001:db8::1', '3fff::', '3fff:fff:ffff::1']],
  ['mapped', ['::ffff:8.8.8.8', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:0:808:808', '::8.8.8.8']],
  ['translated', ['64:ff9b::7f00:1', '64:ff9b::8.8.8.8', '64:ff9b:1::1', '2002:7f00:1::', '2001:0:7f00:1::']],
]

describe('addresses that are not public: regression', () => {
  test.each(notPublic)('%s', (_, texts) => {
    expect(texts.filter(text => isPublic(address(text)))).toEqual([])
  })

  test('forms that stand for an IPv4 address are known', () => {
    const forms = [
      '::ffff:1.2.3.4',
      '::1.2.3.4',
      '::ffff:0:1.2.3.4',
      '64:ff9b::1.2.3.4',
      '64:ff9b:1::1',
      '2002::1',
      '2001::1',
    ]
    expect(forms.filter(form => !embedsVersion4(address(form)))).toEqual([])
    expect(
      ['::1', '::', '2606:4700::1111', 'fd00::1', '8.8.8.8'].filter(form => embedsVersion4(address(form))),
    ).toEqual([])
  })
})

test('addresses beside the special ranges are public', () => {
  const texts = ['8.8.8.8', '1.1.1.1', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '172.15.255.255']
  texts.push('172.32.0.0', '169.253.255.255', '192.167.255.255', '223.255.255.255', '2606:4700::1111', '2a00:1450::1')
  expect(texts.filter(text => !isPublic(address(text)))).toEqual([])
})

test('only the usual text forms are addresses: regression', () => {
  const bad = [
    '',
    '1',
    '127.1',
    '127.0.1',
    '0x7f.0.0.1',
    '0177.0.0.1',
    '2130706433',
    '1.2.3.256',
    '1.2.3.4.5',
    '1.2.3.4 ',
  ]
  bad.push(
    '::1%lo',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '12345::',
    'g::',
    '::1.2.3',
    '::1.2.3.4:5',
    ':1::',
  )
  expect(bad.filter(text => parseAddress(text) !== undefined)).toEqual([])
  expect(address('::ffff:1.2.3.4').value).toBe(0xffff01020304n)
  expect(address('2001:DB8::a:0').value).toBe(address('2001:db8:0:0:0:0:a:0').value)
})

test('a range holds what begins with its bits', () => {
  const rows: [string, string, boolean][] = [
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['0.0.0.0/0', '255.255.255.255', true],
    ['0.0.0.0/0', '::1', false],
    ['1.2.3.4', '1.2.3.4', true],
    ['1.2.3.4/32', '1.2.3.5', false],
    ['::/0', 'ffff::', true],
    ['2001:db8::/32', '2001:db8:ffff::', true],
    ['2001:db8::/32', '2001:db9::', false],
  ]
  for (const [text, inside, wanted] of rows) {
    const range = parseRange(text)
    expect([text, inside, range && isWithin(address(inside), range)]).toEqual([text, inside, wanted])
  }
  const bad = ['10.0.0.1/8', '10.0.0.0/33', '10.0.0.0/', '10.0.0.0/08', '10.0.0.0/-1', '::/129', '/8', '10.0.0.0/8/8']
  expect(bad.filter(text => parseRange(text) !== undefined)).toEqual([])
})
