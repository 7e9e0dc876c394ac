import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readPrivateKey } from '../../src/egress/ssh/private-key.ts'
import { isSignedBy } from '../../src/egress/ssh/public-key.ts'

const directory = mkdtempSync(join(tmpdir(), 'threadbox-keys-'))
afterAll(() => rmSync(directory, { recursive: true }))

const run = (...command: string[]) => {
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd: directory, stderr: 'pipe' })
  if (exitCode !== 0) throw new Error(`${command.join(' ')}: ${stderr}`)
}
const read = (name: string) => readFileSync(join(directory, name), 'utf8')
const data = Buffer.from('what is signed')

const kinds: [string, string[], string[]][] = [
  ['ed25519', ['-t', 'ed25519'], ['ssh-ed25519']],
  ['rsa', ['-t', 'rsa', '-b', '2048'], ['rsa-sha2-256', 'rsa-sha2-512']],
  ['ecdsa-256', ['-t', 'ecdsa', '-b', '256'], ['ecdsa-sha2-nistp256']],
  ['ecdsa-384', ['-t', 'ecdsa', '-b', '384'], ['ecdsa-sha2-nistp384']],
  ['ecdsa-521', ['-t', 'ecdsa', '-b', '521'], ['ecdsa-sha2-nistp521']],
]

describe('a key as ssh-keygen writes it', () => {
  for (const [name, words, algorithms] of kinds) {
    test(`${name} has its public half, and signs what that proves`, () => {
      run('ssh-keygen', '-q', ...words, '-N', '', '-f', name)
      const key = readPrivateKey(read(name))
      expect(key.publicKey.toString('base64')).toBe(read(`${name}.pub`).split(' ')[1]!)
      for (const algorithm of algorithms) {
        // The numbers of an ECDSA signature are not always as long.
        for (let time = 0; time < 20; time++) {
          const signature = key.sign(algorithm, data)
          expect(isSignedBy(key.publicKey, signature, data)).toBe(true)
          expect(isSignedBy(key.publicKey, signature, Buffer.from('another'))).toBe(false)
          signature[signature.length - 1]! ^= 1
          expect(isSignedBy(key.publicKey, signature, data)).toBe(false)
        }
      }
      for (const other of ['ssh-rsa', 'none', 'constructor']) expect(() => key.sign(other, data)).toThrow()
    })

    test(`${name} as PEM is the same key`, () => {
      // Of ed25519 ssh-keygen writes no PEM.
      if (name === 'ed25519') run('openssl', 'genpkey', '-algorithm', 'ed25519', '-out', 'pem')
      else run('sh', '-c', `cp ${name} pem && chmod 600 pem && ssh-keygen -q -p -N '' -m PEM -f pem`)
      expect(read('pem')).not.toContain('OPENSSH')
      const key = readPrivateKey(read('pem'))
      if (name !== 'ed25519') expect(key.publicKey).toEqual(readPrivateKey(read(name)).publicKey)
      expect(isSignedBy(key.publicKey, key.sign(algorithms[0]!, data), data)).toBe(true)
    })
  }

  test('with a passphrase, damaged or no key at all is refused without a word of it', () => {
    run('ssh-keygen', '-q', '-t', 'ed25519', '-N', 'word of passage', '-f', 'locked')
    expect(() => readPrivateKey(read('locked'))).toThrow(/^the key has a passphrase$/)
    run(
      'sh',
      '-c',
      "cp rsa locked.pem && chmod 600 locked.pem && ssh-keygen -q -p -N 'word of passage' -m PEM -f locked.pem",
    )
    expect(() => readPrivateKey(read('locked.pem'))).toThrow(/^the key has a passphrase$/)
    const whole = read('ed25519')
    const others = ['', 'secret', whole.slice(0, 200), whole.replace(/\n.{20}/, '\n'), read('ed25519.pub')]
    for (const each of others) expect(() => readPrivateKey(each)).toThrow(/^it is no private key of OpenSSH or PEM$/)
  })
})

test('a signature or key that is malformed proves nothing', () => {
  const { publicKey, sign } = readPrivateKey(read('ecdsa-256'))
  const signature = sign('ecdsa-sha2-nistp256', data)
  for (let end = 0; end < signature.length; end++)
    expect(isSignedBy(publicKey, signature.subarray(0, end), data)).toBe(false)
  for (let end = 0; end < publicKey.length; end++)
    expect(isSignedBy(publicKey.subarray(0, end), signature, data)).toBe(false)
})
