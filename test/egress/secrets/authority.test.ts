import { expect, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAuthority } from '../../../src/egress/secrets/authority.ts'

function open(kept: { text?: string } = {}) {
  return createAuthority({
    read: () => kept.text,
    write(text) {
      kept.text = text
    },
  })
}

test('leaves of an authority hold for their name alone, by the strict rules of OpenSSL', async () => {
  const authority = open()
  const long = `${'a'.repeat(60)}.${'b'.repeat(60)}.example.com`
  const directory = mkdtempSync(join(tmpdir(), 'threadbox-leaf-'))
  try {
    writeFileSync(join(directory, 'authority'), await authority.certificatePem())
    for (const name of ['api.example.com', long]) {
      writeFileSync(join(directory, 'leaf'), (await authority.leafFor(name)).certificate)
      const verify = async (asked: string) => {
        const purpose = ['-x509_strict', '-purpose', 'sslserver', '-verify_hostname', asked]
        const command = ['openssl', 'verify', ...purpose, '-CAfile', 'authority', 'leaf']
        return await Bun.spawn(command, { cwd: directory, stdout: 'ignore', stderr: 'ignore' }).exited
      }
      expect(await verify(name)).toBe(0)
      expect(await verify('other.example.com')).not.toBe(0)
    }
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('an authority is made at its first need, kept, and another one for each place', async () => {
  const kept: { text?: string } = {}
  const authority = open(kept)
  expect(kept.text).toBeUndefined()
  const certificate = await authority.certificatePem()
  expect(await open(kept).certificatePem()).toBe(certificate)
  const leaf = new X509Certificate((await open(kept).leafFor('a.example')).certificate)
  expect(leaf.checkIssued(new X509Certificate(certificate))).toBe(true)
  expect(await open().certificatePem()).not.toBe(certificate)
})

test('a name keeps its leaf', async () => {
  const authority = open()
  expect(await authority.leafFor('a.example')).toEqual(await authority.leafFor('a.example'))
})

test('a place that cannot be written to makes no authority, and does later', async () => {
  let isFull = true
  const authority = createAuthority({
    read: () => undefined,
    write() {
      if (isFull) throw new Error('the disk is full')
    },
  })
  await expect(authority.certificatePem()).rejects.toThrow('the disk is full')
  isFull = false
  expect(await authority.certificatePem()).toContain('BEGIN CERTIFICATE')
})
