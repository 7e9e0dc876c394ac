import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createEgress, type Egress, type EgressParts } from '../../../src/egress/egress.ts'
import { type Answering, answerMessage } from '../../../src/egress/names/answer.ts'
import { createNamePool } from '../../../src/egress/names/pool.ts'
import { parseAddress } from '../../../src/read/addresses.ts'
import { dice, seed } from '../../faults/random.ts'
import { openPolicy, SANDBOX } from '../support.ts'
import { ask, kinds, nameBytes, told } from './dns.ts'

setDefaultTimeout(60_000)

const open: Egress[] = []
afterEach(() => {
  for (const egress of open.splice(0)) egress.close()
})

function opened(parts: Partial<EgressParts>): Egress {
  const egress = createEgress({ policyOf: () => openPolicy, log: () => {}, resolve: async () => ['1.2.3.4'], ...parts })
  open.push(egress)
  return egress
}

const settled = () => new Promise<void>(resolve => setImmediate(resolve))

describe('malformed messages', () => {
  const answering: Answering = {
    policy: () => openPolicy,
    pool: createNamePool('env_fuzz'),
    refused() {},
    lookups: {
      kindsOf: async () => ({ found: { has4: true, has6: true } }),
      records: async () => ({ found: [{ type: kinds.TXT, ttl: 1, data: Buffer.from('\x01a') }] }),
    },
  }

  test('thousands of them get an answer that can be read, or silence, and none throws: regression', async () => {
    const roll = dice(seed)
    const seeds = [
      ask('example.com', { edns: 1232 }),
      ask('_a._tcp.b.example', { type: kinds.SRV, edns: 65_535 }),
      ask('4.3.2.1.in-addr.arpa', { type: kinds.PTR }),
      ask('8.b.d.0.1.0.0.2.ip6.arpa', { type: kinds.PTR }),
      ask(Buffer.concat([...Array<Buffer>(127).fill(Buffer.from('\x01a')), Buffer.of(0)])),
    ]
    const codes = new Set<string>()
    for (let round = 0; round < 20_000; round++) {
      const base = seeds[roll(seeds.length) - 1] ?? Buffer.alloc(0)
      const message = Buffer.concat([base, Buffer.alloc(roll(3) === 1 ? roll(300) : 0, roll(256) - 1)])
      for (let change = roll(6); change > 1; change--) message[roll(message.byteLength) - 1] = roll(256) - 1
      const cut = roll(3) === 1 ? message.subarray(0, roll(message.byteLength)) : message
      const answer = await answerMessage(cut, roll(2) === 1 ? 'udp' : 'tcp', answering)
      if (!answer) continue
      const { code, id } = told(answer)
      codes.add(code)
      if (id !== cut.readUInt16BE(0)) throw new Error(`seed ${seed}: ${cut.toString('hex')}`)
    }
    for (const code of ['NOERROR', 'FORMERR', 'NXDOMAIN', 'NOTIMP', 'REFUSED']) expect(codes).toContain(code)
  })

  test('pointers that go round and counts without records take no longer than others: regression', async () => {
    const round = ask(Buffer.from([0xc0, 12]))
    const many = ask('a.example')
    for (const offset of [6, 8, 10]) many.writeUInt16BE(65_535, offset)
    const nested = Buffer.concat([
      ask('a.example', { edns: 512 }),
      ...Array<Buffer>(80).fill(nameBytes('a'.repeat(10))),
    ])
    nested.writeUInt16BE(4, 10)
    for (const message of [round, many, nested])
      for (let times = 0; times < 5000; times++)
        expect(told(await answerMessage(message, 'udp', answering)).code).toBe('FORMERR')
  })

  test('an answer of 64 KiB and more is one that fits, or none that can be mistaken for whole: regression', async () => {
    const data = Buffer.concat(Array<Buffer>(255).fill(Buffer.from(`\xff${'x'.repeat(255)}`, 'latin1')))
    const large: Answering = {
      ...answering,
      lookups: {
        ...answering.lookups,
        records: async () => ({ found: [1, 2].map(() => ({ type: 16, ttl: 1, data })) }),
      },
    }
    for (const transport of ['udp', 'tcp'] as const) {
      const answer = await answerMessage(ask('a.example', { type: kinds.TXT, edns: 65_535 }), transport, large)
      expect(told(answer)).toMatchObject({ isTruncated: true, records: [] })
    }
    const records = async () => ({ found: [{ type: 16, ttl: 1, data: data.subarray(0, 65_280 - 256) }] })
    const whole = await answerMessage(ask('a.example', { type: kinds.TXT }), 'tcp', {
      ...large,
      lookups: { ...large.lookups, records },
    })
    expect(told(whole)).toMatchObject({ isTruncated: false, records: [{ type: 16 }] })
  })
})

describe('floods', () => {
  test('of one sandbox are answered at a rate, and the rest is dropped at once: regression', async () => {
    const egress = opened({})
    const all = Array.from({ length: 20_000 }, () => egress.answerName(SANDBOX, ask('localhost'), 'udp'))
    const quiet = told(await egress.answerName('env_other', ask('other.example'), 'udp'))
    expect(quiet.code).toBe('NOERROR')
    const answered = (await Promise.all(all)).filter(Boolean).length
    expect(answered).toBeGreaterThanOrEqual(2000)
    expect(answered).toBeLessThan(10_000)
  })

  test('of refused names leave a bounded journal', async () => {
    const lines: string[] = []
    const egress = opened({ policyOf: () => ({ ...openPolicy, mode: 'none' }), log: line => void lines.push(line) })
    for (let index = 0; index < 2000; index++) await egress.answerName(SANDBOX, ask(`n${index}.example`), 'udp')
    expect(egress.decisions(SANDBOX)).toHaveLength(200)
    expect(lines.length).toBeLessThanOrEqual(61)
    expect(egress.counts(SANDBOX).refused).toBe(2000)
  })
})

describe('a resolver that hangs', () => {
  test('holds a bounded number of a sandbox’s questions, while others are answered: regression', async () => {
    const lookups: ((addresses: string[]) => void)[] = []
    let asked = 0
    const egress = opened({
      resolve(name) {
        asked++
        if (!name.startsWith('slow')) return Promise.resolve(['1.2.3.4'])
        return new Promise(resolve => lookups.push(resolve))
      },
    })
    const query = async (sandbox: string, name: string) => told(await egress.answerName(sandbox, ask(name), 'udp')).code
    expect(await query(SANDBOX, 'known.example')).toBe('NOERROR')
    const slow = Array.from({ length: 1000 }, (_, index) => query(SANDBOX, `slow${index}.example`))
    const over = await Promise.all(slow.slice(64))
    expect(new Set(over)).toEqual(new Set(['SERVFAIL']))
    expect(asked).toBe(1 + 8)
    // What is known, what is refused and what other sandboxes ask waits for nothing.
    expect(await query(SANDBOX, 'known.example')).toBe('NOERROR')
    expect(await query(SANDBOX, 'localhost')).toBe('NOERROR')
    expect(await query('env_other', 'other.example')).toBe('NOERROR')
    // A question that is asked again joins the first.
    const again = query(SANDBOX, 'slow0.example')
    for (let round = 0; round < 64; round++) {
      for (const resolve of lookups.splice(0)) resolve(['1.2.3.4'])
      await settled()
    }
    expect(new Set([...(await Promise.all(slow.slice(0, 64))), await again])).toEqual(new Set(['NOERROR']))
    expect(asked).toBe(1 + 64 + 1)
  })

  test('leaves no heap of connections that have given up: regression', async () => {
    const egress = opened({
      resolve: () => new Promise(() => {}),
      paces: { connection: { perSecond: 1000, burst: 3000, maxWaiting: 0 } },
    })
    const refused = Array.from({ length: 3000 }, (_, index) =>
      egress.fetch(SANDBOX, `http://n${index}.example/`).then(String, error => String(error)),
    )
    expect(await Promise.race([Promise.all(refused.slice(2000)), Bun.sleep(8000)])).toEqual(
      Array(1000).fill(expect.stringContaining('too many names at once')),
    )
  })
})

test('an address of another sandbox’s pool leads nowhere, and neither does its PTR: regression', async () => {
  const egress = opened({})
  const [record] = told(await egress.answerName('env_other', ask('other.example'), 'udp')).records
  expect(parseAddress(record?.data ?? '')).toBeDefined()
  const reverse = `${record?.data.split('.').reverse().join('.')}.in-addr.arpa`
  expect(told(await egress.answerName(SANDBOX, ask(reverse, { type: kinds.PTR }), 'udp')).code).toBe('NXDOMAIN')
  expect(told(await egress.answerName('env_other', ask(reverse, { type: kinds.PTR }), 'udp')).code).toBe('NOERROR')
})

test('what a resolver answers is never passed on as an address, whatever it says: regression', async () => {
  const lies = ['169.254.169.254', '127.0.0.1', '::ffff:10.0.0.1', 'not an address', '']
  const egress = opened({ resolve: async () => lies })
  for (const type of [kinds.A, kinds.AAAA]) {
    const { records } = told(await egress.answerName(SANDBOX, ask('rebound.example', { type }), 'udp'))
    for (const { data } of records) expect(data).toMatch(/^(198\.1[89]\.|fd74:6872:6561:6462:)/)
  }
})
