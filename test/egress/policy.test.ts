import { describe, expect, test } from 'bun:test'
import { findDenial, findNameDenial, type Policy } from '../../src/egress/policy.ts'
import { parseHost, parseRule, parseRules } from '../../src/egress/rules.ts'
import { parseAddress } from '../../src/read/addresses.ts'

interface Lists {
  mode?: Policy['mode']
  agent?: { allow?: string[]; deny?: string[] }
  own?: { allow?: string[]; deny?: string[] }
  ceiling?: string[]
}

const policyOf = ({ mode = 'public', agent, own, ceiling = [] }: Lists): Policy => ({
  mode,
  ceiling: parseRules(ceiling),
  layers: [agent, own].flatMap(lists =>
    lists ? [{ ...(lists.allow && { allow: parseRules(lists.allow) }), deny: parseRules(lists.deny ?? []) }] : [],
  ),
})

/** `host:port` or `host:port=address`. */
function verdict(lists: Lists, text: string): string {
  const [, hostText = '', port = '', given] = /^(.*?):(\d+)(?:=(.*))?$/.exec(text.replace(/^\[/, '[')) ?? []
  const host = parseHost(hostText)
  if (!host) throw new Error(`no host: ${text}`)
  const target = { ...host, port: Number(port) }
  const address = host.address ?? parseAddress(given ?? '8.8.8.8')
  if (!address) throw new Error(`no address: ${text}`)
  return findDenial(policyOf(lists), target, address) ?? 'allowed'
}

const allow = (...rules: string[]): Lists => ({ own: { allow: rules } })
const deny = (...rules: string[]): Lists => ({ own: { deny: rules } })

const rows: [string, Lists, string, string][] = [
  ['public addresses are allowed without rules', {}, 'example.com:443', 'allowed'],
  ['on any port', {}, 'example.com:5432', 'allowed'],
  ['but mail', {}, 'example.com:25', 'port 25 is for mail, and no rule allows it'],
  ['unless a rule names the port', allow('example.com:587'), 'example.com:587', 'allowed'],
  [
    'not by a rule without ports',
    allow('example.com'),
    'example.com:465',
    'port 465 is for mail, and no rule allows it',
  ],
  [
    'not by a rule for another host',
    allow('b.com:465', '1.1.1.1:465', 'example.com'),
    'example.com:465',
    'port 465 is for mail, and no rule allows it',
  ],
  ['a name of a private address is refused', {}, 'example.com:80=10.0.0.1', 'its address is not public'],
  ['also when the name is allowed', allow('example.com'), 'example.com:80=10.0.0.1', 'its address is not public'],
  ['an address is taken as it is', {}, '8.8.8.8:53', 'allowed'],
  ['none lets nothing through', { mode: 'none' }, 'example.com:443', 'this server lets sandboxes reach no network'],
  ['an allow-list means only these', allow('a.com'), 'b.com:443', 'it is not on the allow-list'],
  ['an empty allow-list means nothing', allow(), 'b.com:443', 'it is not on the allow-list'],
  ['a domain is not its subdomains', allow('a.com'), 'x.a.com:443', 'it is not on the allow-list'],
  ['a wildcard is every subdomain', allow('*.a.com'), 'y.x.a.com:443', 'allowed'],
  ['a wildcard is not its domain', allow('*.a.com'), 'a.com:443', 'it is not on the allow-list'],
  ['a wildcard ends at a dot', allow('*.a.com'), 'xa.com:443', 'it is not on the allow-list'],
  ['a rule has its port', allow('a.com:443'), 'a.com:80', 'it is not on the allow-list'],
  ['a rule has its ports', allow('a.com:8000-8100'), 'a.com:8100', 'allowed'],
  ['a CIDR allows names by their address', allow('8.8.8.0/24'), 'a.com:443', 'allowed'],
  ['a CIDR refuses other addresses', allow('8.8.8.0/24'), 'a.com:443=8.8.9.1', 'it is not on the allow-list'],
  ['a CIDR of version 6 has ports behind brackets', allow('[2606:4700::]/32:443'), '[2606:4700::1]:443', 'allowed'],
  ['deny wins', { own: { allow: ['a.com'], deny: ['a.com'] } }, 'a.com:443', 'a.com is denied'],
  ['a denied address is denied by any name', deny('8.8.8.8'), 'a.com:443', '8.8.8.8 is denied'],
  ['both layers must allow', { agent: { allow: ['8.8.8.8'] }, own: { allow: ['a.com'] } }, 'a.com:443', 'allowed'],
  [
    'a layer cannot widen another',
    { agent: { allow: ['a.com'] }, own: { allow: ['*.com', 'b.com'] } },
    'b.com:443',
    'it is not on the allow-list',
  ],
  ['both layers may deny', { agent: { deny: ['a.com'] }, own: { allow: ['a.com'] } }, 'a.com:443', 'a.com is denied'],
  [
    'a private range needs the ceiling',
    allow('10.0.0.0/8'),
    'a.com:80=10.0.0.1',
    'its address is not public, and the operator does not permit it',
  ],
  ['and passes with it', { ...allow('10.0.0.0/8'), ceiling: ['10.0.0.0/16'] }, 'a.com:80=10.0.0.1', 'allowed'],
  [
    'up to it',
    { ...allow('10.0.0.0/8'), ceiling: ['10.0.0.0/16'] },
    'a.com:80=10.1.0.1',
    'its address is not public, and the operator does not permit it',
  ],
  [
    'on its ports',
    { ...allow('10.0.0.0/8'), ceiling: ['10.0.0.0/16:443'] },
    '10.0.0.1:80',
    'its address is not public, and the operator does not permit it',
  ],
  ['the ceiling alone opens nothing', { ceiling: ['10.0.0.0/8'] }, '10.0.0.1:80', 'its address is not public'],
  [
    'a domain does not name a range',
    { ...allow('a.com'), ceiling: ['10.0.0.0/8'] },
    'a.com:80=10.0.0.1',
    'its address is not public',
  ],
  [
    'a mapped address passes no rule',
    { ...allow('::/0'), ceiling: ['::/0'] },
    '[::ffff:10.0.0.1]:80',
    'its address stands for an IPv4 address',
  ],
]

describe('a decision', () => {
  test.each(rows)('%s', (_, lists, target, wanted) => {
    expect(verdict(lists, target)).toBe(wanted)
  })
})

test('what no address could allow is refused before the name is resolved: regression', () => {
  const refusal = (lists: Lists, port = 443) => findNameDenial(policyOf(lists), { name: 'secret.evil.com', port })
  expect(refusal(allow('a.com'))).toBe('it is not on the allow-list')
  expect(refusal(allow('8.8.8.8:80'))).toBe('it is not on the allow-list')
  expect(refusal(allow('8.8.8.8:443'))).toBeUndefined()
  expect(refusal({ mode: 'none' })).toBeDefined()
  expect(refusal(deny('*.evil.com'))).toBe('*.evil.com is denied')
})

test('rules that are not valid are refused with their text', () => {
  const bad = [
    '',
    '*',
    '*.',
    'a b',
    'http://a.com',
    'a.com/x',
    'a..com',
    '-a.com',
    '*.*.com',
    'a.*',
    'a.com:',
    'a.com:0',
  ]
  bad.push(
    'a.com:65536',
    'a.com:9-8',
    'a.com:x',
    '10.0.0.1/8',
    '10.0.0.0/33',
    '127.1',
    '0x7f.1',
    '1.2.3.4.5',
    '2130706433',
  )
  bad.push(
    '[1.2.3.4]:80',
    '[::1',
    '::1]:80',
    '[a.com]:80',
    'a.com:80:90',
    'fe80::1%eth0',
    `${'a'.repeat(64)}.com`,
    'ä.com',
  )
  for (const text of bad) expect(() => parseRule(text)).toThrow(JSON.stringify(text))
})

test('hosts are names or usual addresses, and nothing that a resolver reads as another: regression', () => {
  const bad = [
    '2130706433',
    '0x7f000001',
    '127.1',
    '0177.0.0.1',
    '1.2.3.4.5',
    '1.2.3',
    'a.0x1',
    '::1',
    '[1.2.3.4]',
    '[::1%lo]',
  ]
  bad.push('', '.', 'a b', 'a/b', 'a@b', '1.2.3.4.', 'a..b', '[]', '[a.com]', 'ä.com', `${'a.'.repeat(127)}com`)
  expect(bad.filter(text => parseHost(text) !== undefined)).toEqual([])
  expect(parseHost('WWW.Example.COM.')).toEqual({ name: 'www.example.com' })
  expect(parseHost('[2606::1]')?.name).toBe('2606::1')
})
