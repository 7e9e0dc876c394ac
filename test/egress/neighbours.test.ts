import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { isNear, parseRoutes4, parseRoutes6 } from '../../src/egress/neighbours.ts'
import { parseAddress } from '../../src/read/addresses.ts'

const address = (text: string) => {
  const parsed = parseAddress(text)
  if (!parsed) throw new Error(`not an address: ${text}`)
  return parsed
}

const source = join(import.meta.dir, '../../src')

/** Asked by a program in a network namespace of its own, again after each change. */
const program = `
import { parseAddress } from '${source}/read/addresses.ts'
import { findDenial } from '${source}/egress/policy.ts'
const texts = ['8.8.4.1', '8.8.4.77', '9.9.9.9', '8.8.4.254', '1.0.0.1', '8.8.8.8', '2606:4700::77', '2606:4700:1::1']
const policy = { mode: 'public', layers: [], ceiling: [] }
const show = () => {
  const near = texts.filter(name => findDenial(policy, { name, port: 443, address: parseAddress(name) }, parseAddress(name)))
  console.log(near.join(' ') || 'none')
}
const ip = line => {
  const { exitCode, stderr } = Bun.spawnSync(['ip', ...line.split(' ')])
  if (exitCode !== 0) throw new Error(line + ': ' + stderr)
}
ip('link set lo up')
show()
for (const line of ['addr add 8.8.4.1/24 dev lo', '-6 addr add 2606:4700::1/64 dev lo', 'route add 9.9.9.0/24 dev lo']) { ip(line); show() }
ip('addr del 8.8.4.1/24 dev lo')
ip('addr add 172.20.0.1/16 dev lo')
ip('route add 8.8.4.254/32 dev lo')
ip('route add 1.0.0.0/24 via 8.8.4.254 dev lo')
ip('route add default dev lo')
show()
`

test('neighbours and gateways are refused whatever their range, also new ones: regression', () => {
  const command = ['unshare', '--map-root-user', '--net', process.execPath, '-e', program]
  const { stdout, stderr } = Bun.spawnSync(command, { stderr: 'pipe' })
  expect(stderr.toString()).toBe('')
  expect(stdout.toString().trim().split('\n')).toEqual([
    'none',
    '8.8.4.1 8.8.4.77 8.8.4.254',
    '8.8.4.1 8.8.4.77 8.8.4.254 2606:4700::77',
    '8.8.4.1 8.8.4.77 9.9.9.9 8.8.4.254 2606:4700::77',
    '9.9.9.9 8.8.4.254 2606:4700::77',
  ])
})

test('this machine is near, and the internet is not', () => {
  expect(['127.0.0.1', '::1', '8.8.8.8'].map(text => isNear(address(text)))).toEqual([true, true, false])
})

test("the kernel's tables of routes are read, and what is none of them is left", () => {
  const table4 = `Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0
*\t00000009\t00000000\t0200\t0\t0\t0\t000000FF\t0\t0\t0
eth0\tx\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0`
  const value = (text: string) => address(text).value
  expect(parseRoutes4(table4)).toEqual([
    { version: 4, value: value('192.168.0.1'), bits: 32 },
    { version: 4, value: value('192.168.0.0'), bits: 24 },
  ])
  const zero = '0'.repeat(32)
  const table6 = `20010db8000000000000000000000000 40 ${zero} 00 ${zero} 00000100 00000001 00000000 00000001     eth0
${zero} 00 ${zero} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth0
${zero} 00 ${zero} 00 ${zero} ffffffff 00000001 00000000 00200200       lo
20000000000000000000000000000000 03 ${zero} 00 ${zero} 00000400 00000001 00000000 00000001     tun0
nothing`
  expect(parseRoutes6(table6)).toEqual([
    { version: 6, value: value('2001:db8::'), bits: 64 },
    { version: 6, value: value('fe80::1'), bits: 128 },
  ])
})
