import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { withJavaCertificate } from '../../src/core/trust/java-store.ts'

/** As keytool of Java 17 has written it: one certificate, `root`. */
const store = Buffer.from(
  '/u3+7QAAAAIAAAABAAAAAgAEcm9vdAAAAaID0feeAAVYLjUwOQAAAXkwggF1MIIBG6ADAgECAhQFhNY57l2XaAOLwFlIpMPRkANR4TAKBggqhkjOPQQDAjAPMQ0wCwYDVQQDDARyb290MCAXDTI2MTEyMjE1MTM0MFoYDzIxMjYxMDI5MTUxMzQwWjAPMQ0wCwYDVQQDDARyb290MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAElJZ4YhRPacTD50cZbFpD/iJVyM69qN50LO4bhnsegmL2M1uG0UdmBNHnAdFyrGKPR4lm4wJpsFIWh44ynH5kBKNTMFEwHQYDVR0OBBYEFIpEKRbfaQFzsDWpVp+hd+ClsDD6MB8GA1UdIwQYMBaAFIpEKRbfaQFzsDWpVp+hd+ClsDD6MA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhAPfO8KmTAoq+dA6DxiiIEEH1awTjHNL90zatoUQW1IgQAiB4GsbX59YVxYrCSmvmk5h6dLOKwGhLcDaEvQOsRmX+voWxCyGqi2xfWfLDx8+rJQWbp6Lt',
  'base64',
)
const certificate = Buffer.from('the bytes of a certificate')

const signed = (content: Buffer) =>
  Buffer.concat([
    content,
    createHash('sha1').update('\0c\0h\0a\0n\0g\0e\0i\0t').update('Mighty Aphrodite').update(content).digest(),
  ])

test('a certificate is added once, whatever was added before, and the others stay', () => {
  const once = withJavaCertificate(store, Buffer.from('the former one'), 1)!
  const twice = withJavaCertificate(once, certificate, 2)!
  expect(withJavaCertificate(store, certificate, 2)).toEqual(twice)
  expect(twice.readUInt32BE(8)).toBe(2)
  expect(twice.subarray(12, store.length - 20)).toEqual(store.subarray(12, -20))
  expect(twice.includes(certificate)).toBe(true)
  expect(signed(twice.subarray(0, -20)).equals(twice)).toBe(true)
})

test('what is no store of certificates with the usual password is left alone', () => {
  const changed = Buffer.from(store)
  changed[100]! ^= 1
  const withKey = Buffer.from(store.subarray(0, -20))
  withKey.writeUInt32BE(1, 12)
  const endless = Buffer.from(store.subarray(0, -20))
  endless.writeUInt32BE(0xffffffff, 8)
  const cut = signed(store.subarray(0, 200))
  const others = [Buffer.alloc(0), Buffer.alloc(40), changed, signed(withKey), signed(endless), cut]
  for (const each of others) expect(withJavaCertificate(each, certificate, 1)).toBeUndefined()
})
