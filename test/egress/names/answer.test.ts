import { afterEach, describe, expect, test } from 'bun:test'
import { createEgress, type Egress, type EgressDecision } from '../../../src/egress/egress.ts'
import type { FindRecords } from '../../../src/egress/names/upstream.ts'
import type { Policy } from '../../../src/egress/policy.ts'
import { parseRules } from '../../../src/egress/rules.ts'
import { openPolicy, SANDBOX } from '../support.ts'
import { ask, kindOf, kinds, nameBytes, told } from './dns.ts'

const failure = (code: string) => Object.assign(new Error(code), { code })
const allowing = (...rules: string[]): Policy => ({ ...openPolicy, layers: [{ allow: parseRules(rules), deny: [] }] })
const denying = (...rules: string[]): Policy => ({ ...openPolicy, layers: [{ deny: parseRules(rules) }] })

interface Bench {
  egress: Egress
  policy: Policy
  /** Names that the resolver of the server was asked for, with the kind of record. */
  asked: string[]
  refused: EgressDecision[]
  query(name: string, type?: number): Promise<string>
}

const open: Egress[] = []
afterEach(() => {
  for (const egress of open.splice(0)) egress.close()
})

const addresses: Record<string, string[]> = {
  'both.example.com': ['93.184.216.34', '2606:2800::1'],
  'four.example.com': ['93.184.216.34'],
  'six.example.com': ['2606:2800::1'],
  'inside.example.com': ['10.1.2.3'],
}
const records: Record<string, [type: number, data: Uint8Array][]> = {
  'SRV _db._tcp.example.com': [
    [kinds.SRV, Buffer.concat([Buffer.of(0, 1, 0, 2, 21, 56), nameBytes('Db.Example.com')])],
  ],
  'MX mail.example.com': [[kinds.MX, Buffer.of(0, 0, 0)]],
  'A mail.example.com': [],
  'TXT example.com': [[kinds.TXT, Buffer.from('\x05v=one')]],
  'PTR 4.3.2.1.in-addr.arpa': [[kinds.PTR, nameBytes('one.example')]],
  'TXT long.example.com': [...'abcdefgh'].map(letter => [
    kinds.TXT,
    Buffer.from(`\xff${letter.repeat(255)}`, 'latin1'),
  ]),
}

function openBench(policy = openPolicy): Bench {
  const asked: string[] = []
  const refused: EgressDecision[] = []
  const findRecords: FindRecords = async (name, type) => {
    const question = `${kindOf(type)} ${name}`
    asked.push(question)
    const found = records[question] ?? (name in addresses ? [] : undefined)
    if (!found) throw failure('ENOTFOUND')
    return found.map(([type, data]) => ({ type, ttl: 60, data }))
  }
  const egress = createEgress({
    policyOf: () => bench.policy,
    log: () => {},
    decided: (_, decision) => void (decision.isAllowed || refused.push(decision)),
    async resolve(name) {
      asked.push(name)
      if (name === 'broken.example.com') throw failure('ETIMEOUT')
      const found = addresses[name]
      if (!found) throw failure('ENOTFOUND')
      return found
    },
    findRecords,
  })
  open.push(egress)
  const query = async (name: string, type = kinds.A) => {
    const { code, records, error } = told(await egress.answerName(SANDBOX, ask(name, { type, edns: 1232 }), 'udp'))
    return [code, ...records.map(({ data }) => data), ...(error === undefined ? [] : [error])].join(' ')
  }
  const bench: Bench = { egress, policy, asked, refused, query }
  return bench
}

const four = /^NOERROR 198\.1[89]\.\d+\.\d+$/
const six = /^NOERROR fd74:6872:6561:6462:0000:0000:c61[23]:[0-9a-f]{4}$/

describe('addresses', () => {
  test('a name has the address of the pool that leads to it, of each kind that it has', async () => {
    const { query } = openBench()
    expect(await query('both.example.com')).toMatch(four)
    expect(await query('both.example.com', kinds.AAAA)).toMatch(six)
    expect(await query('both.example.com')).toBe(await query('BOTH.example.com'))
    expect(await query('four.example.com', kinds.AAAA)).toBe('NOERROR')
    expect(await query('six.example.com')).toBe('NOERROR')
    expect(await query('six.example.com', kinds.AAAA)).toMatch(six)
    expect(await query('missing.example.com')).toBe('NXDOMAIN')
    expect(await query('broken.example.com')).toBe('SERVFAIL')
    // It has other records alone.
    for (const type of [kinds.A, kinds.AAAA]) expect(await query('mail.example.com', type)).toBe('NOERROR')
    // No address of the server's world is ever shown, whatever it is.
    expect(await query('inside.example.com')).toMatch(four)
  })

  test('both kinds of a name ask the server’s resolver once, also at the same time', async () => {
    const { query, asked } = openBench()
    await Promise.all([query('both.example.com'), query('both.example.com', kinds.AAAA), query('both.example.com')])
    await query('both.example.com', kinds.AAAA)
    expect(asked).toEqual(['both.example.com'])
  })

  test('the answer has the question as it was asked, in its case, and its number', async () => {
    const { egress } = openBench()
    const message = ask('fOuR.eXample.COM', { id: 999 })
    const answer = told(await egress.answerName(SANDBOX, message, 'udp'))
    expect(answer).toMatchObject({ id: 999, name: 'fOuR.eXample.COM', code: 'NOERROR', isTruncated: false })
    expect(answer.records).toEqual([{ type: kinds.A, ttl: 60, data: expect.stringMatching(/^198\.1[89]\./) }])
  })

  test('this machine’s own names are answered without asking anybody', async () => {
    const { query, asked } = openBench({ ...openPolicy, mode: 'none' })
    expect(await query('localhost')).toBe('NOERROR 127.0.0.1')
    expect(await query('app.localhost', kinds.AAAA)).toMatch(/^NOERROR 0000:.*:0001$/)
    expect(await query('localhost', kinds.MX)).toBe('NOERROR')
    expect(await query('1.0.0.127.in-addr.arpa', kinds.PTR)).toBe(`NOERROR ${nameBytes('localhost').toString('hex')}`)
    expect(asked).toEqual([])
  })
})

describe('rules', () => {
  test('a name is answered where a rule allows some port of it, and asked for only then (regression)', async () => {
    const bench = openBench(allowing('*.example.com:5432', '10.0.0.0/8:22'))
    bench.policy = allowing('*.example.com:5432', 'other.example')
    expect(await bench.query('four.example.com')).toMatch(four)
    for (const name of ['example.com', 'secret.evil.example', 'fourexample.com', 'four.example.com.evil.example'])
      expect(await bench.query(name)).toBe('NXDOMAIN it is not on the allow-list')
    for (const type of [kinds.AAAA, kinds.TXT, kinds.SRV, kinds.MX, kinds.NS, kinds.HTTPS, kinds.SSHFP])
      expect(await bench.query('c2VjcmV0.evil.example', type)).toStartWith('NXDOMAIN')
    expect(bench.asked).toEqual(['four.example.com'])
  })

  test.each([
    ['a denied name', denying('four.example.com'), 'NXDOMAIN four.example.com is denied'],
    ['a name with a denied port', denying('four.example.com:443'), four],
    ['a name that is denied up to a port', denying('four.example.com:1-65000'), four],
    ['a name with all ports denied', denying('*.example.com:1-65535'), 'NXDOMAIN *.example.com:1-65535 is denied'],
    ['a mail port alone', allowing('four.example.com:25'), four],
    ['no network', { ...openPolicy, mode: 'none' } as const, 'NXDOMAIN this server lets sandboxes reach no network'],
    ['nothing', allowing(), 'NXDOMAIN it is not on the allow-list'],
    [
      'two lists that share no port',
      { ...openPolicy, layers: [...allowing('four.example.com:22').layers, ...allowing('*.example.com:23').layers] },
      'NXDOMAIN it is not on the allow-list',
    ],
    [
      'two lists that share a port',
      {
        ...openPolicy,
        layers: [...allowing('four.example.com:22-30').layers, ...allowing('*.example.com:30-40').layers],
      },
      four,
    ],
  ] satisfies [string, Policy, string | RegExp][])('%s', async (_, policy, expected) => {
    const { query } = openBench(policy)
    expect(await query('four.example.com')).toMatch(expected)
  })

  test('each refusal is among the decisions, with its reason, and rules hold at once', async () => {
    const bench = openBench(allowing('a.example'))
    await bench.query('four.example.com')
    await bench.query('Four.Example.com', kinds.AAAA)
    const reason = 'it is not on the allow-list'
    const refusal = { host: 'four.example.com', port: 53, isAllowed: false, reason }
    expect(bench.refused).toEqual([refusal, refusal])
    expect(bench.egress.decisions(SANDBOX)).toEqual([{ ...refusal, isName: true, count: 2, at: expect.any(String) }])
    expect(bench.egress.counts(SANDBOX).lastRefusal).toBe(`the name four.example.com: ${reason}`)
    bench.policy = openPolicy
    expect(await bench.query('four.example.com')).toMatch(four)
    bench.policy = denying('four.example.com')
    expect(await bench.query('four.example.com')).toBe('NXDOMAIN four.example.com is denied')
  })

  test('a sandbox whose rules are not known is refused, and asks nobody', async () => {
    const asked: string[] = []
    const egress = createEgress({
      policyOf() {
        throw new Error('no such sandbox')
      },
      log: () => {},
      resolve: async name => [name, ...asked.splice(0, 0, name)],
    })
    open.push(egress)
    expect(told(await egress.answerName(SANDBOX, ask('example.com'), 'udp')).code).toBe('REFUSED')
    expect(asked).toEqual([])
  })
})

describe('other records', () => {
  test('are what the server’s resolver says', async () => {
    const { query, asked } = openBench()
    expect(await query('_DB._tcp.example.com', kinds.SRV)).toBe(
      `NOERROR 000100021538${nameBytes('Db.Example.com').toString('hex')}`,
    )
    expect(await query('example.com', kinds.TXT)).toBe(`NOERROR ${Buffer.from('\x05v=one').toString('hex')}`)
    expect(await query('four.example.com', kinds.MX)).toBe('NOERROR')
    expect(await query('nowhere.example', kinds.CAA)).toBe('NXDOMAIN')
    expect(asked).toEqual(['SRV _db._tcp.example.com', 'TXT example.com', 'MX four.example.com', 'CAA nowhere.example'])
  })

  test('that would lead around the rules are empty, and what asks for all is refused', async () => {
    const { query, asked } = openBench()
    for (const type of [kinds.HTTPS, kinds.SVCB, 38, 65280])
      expect(await query('four.example.com', type)).toBe('NOERROR')
    for (const type of [kinds.ANY, 251, 252]) expect(await query('four.example.com', type)).toBe('REFUSED')
    expect(asked).toEqual([])
  })

  test('an address leads back to its name in the pool, and elsewhere to what rules on the address allow', async () => {
    const bench = openBench()
    const [, address = ''] = (await bench.query('both.example.com')).split(' ')
    const own = `${address.split('.').reverse().join('.')}.in-addr.arpa`
    expect(await bench.query(own, kinds.PTR)).toBe(`NOERROR ${nameBytes('both.example.com').toString('hex')}`)
    const [, long = ''] = (await bench.query('both.example.com', kinds.AAAA)).split(' ')
    const own6 = `${[...long.replaceAll(':', '')].reverse().join('.')}.ip6.arpa`
    expect(await bench.query(own6, kinds.PTR)).toBe(`NOERROR ${nameBytes('both.example.com').toString('hex')}`)
    expect(await bench.query('9.9.19.198.in-addr.arpa', kinds.PTR)).toBe('NXDOMAIN')
    expect(await bench.query('4.3.2.1.in-addr.arpa', kinds.PTR)).toStartWith('NOERROR')
    expect(await bench.query('3.2.1.10.in-addr.arpa', kinds.PTR)).toBe('NXDOMAIN its address is not public')
    bench.policy = allowing('1.2.3.0/24:5432')
    expect(await bench.query('4.3.2.1.in-addr.arpa', kinds.PTR)).toStartWith('NOERROR')
    expect(await bench.query('4.3.2.9.in-addr.arpa', kinds.PTR)).toBe('NXDOMAIN it is not on the allow-list')
    expect(bench.asked.filter(each => each.startsWith('PTR'))).toEqual(
      ['PTR 4.3.2.1.in-addr.arpa'].flatMap(each => [each, each]),
    )
  })
})

describe('the wire', () => {
  test('an answer that UDP has no room for says so, and comes whole over TCP', async () => {
    const { egress } = openBench()
    const message = (edns?: number) => ask('long.example.com', { type: kinds.TXT, ...(edns !== undefined && { edns }) })
    const over = async (transport: 'udp' | 'tcp', edns?: number) =>
      told(await egress.answerName(SANDBOX, message(edns), transport))
    expect(await over('udp')).toMatchObject({ code: 'NOERROR', isTruncated: true, records: [] })
    expect(await over('udp', 1232)).toMatchObject({ isTruncated: true, records: [] })
    for (const whole of [await over('udp', 4096), await over('tcp'), await over('tcp', 1232)])
      expect([whole.isTruncated, whole.records.length]).toEqual([false, 8])
  })

  test.each([
    ['another class', ask('version.bind', { type: kinds.TXT, class: 3 }), 'REFUSED'],
    ['another operation', ask('a.example', { flags: 0x2800 }), 'NOTIMP'],
    ['a later EDNS', ask('four.example.com', { edns: 1232, ednsVersion: 1 }), '16'],
    ['a name with a dot within a label', ask(Buffer.from('\x10four.example.com\0', 'latin1')), 'NXDOMAIN'],
    ['a name of other bytes', ask(Buffer.from([3, 0, 255, 46, 0])), 'NXDOMAIN'],
    ['an address as a name', ask('93.184.216.34'), 'NXDOMAIN'],
    ['the root', ask('', { type: kinds.NS }), 'REFUSED'],
    ['a pointer for a name', ask(Buffer.from([0xc0, 12])), 'FORMERR'],
    [
      'a name that is too long',
      ask(Buffer.concat([...Array(5).fill(Buffer.from(`\x3f${'a'.repeat(63)}`)), Buffer.of(0)])),
      'FORMERR',
    ],
    ['a question that is cut', ask('four.example.com').subarray(0, 20), 'FORMERR'],
    ['two questions', Buffer.from(ask('a.example')).fill(2, 5, 6), 'FORMERR'],
    ['a query as long as an answer', Buffer.concat([ask('a.example'), Buffer.alloc(60_000)]), 'FORMERR'],
  ])('%s has an error as its answer', async (_, message, code) => {
    const { egress } = openBench()
    expect(told(await egress.answerName(SANDBOX, message, 'udp')).code).toBe(code as string)
  })

  test('what is no question gets no answer', async () => {
    const { egress } = openBench()
    const silent = [Buffer.alloc(0), Buffer.alloc(11), ask('a.example', { flags: 0x8180 })]
    for (const message of silent) expect(await egress.answerName(SANDBOX, message, 'udp')).toBeUndefined()
  })
})
