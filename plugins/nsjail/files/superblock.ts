/** Where ext4's superblock lies in an image, and its fields in the superblock, in bytes. */
export const SUPERBLOCK_AT = 1024
export const SUPERBLOCK_BYTES = 1024
const UUID_AT = 0x68
const HASH_SEED_AT = 0xec
const CHECKSUM_AT = 0x3fc

/** Makes the superblock of a copy: with a UUID and a seed for its directories' hashes that no other file system has. */
export function withNewIdentity(superblock: Buffer): Buffer {
  const copy = Buffer.from(superblock)
  for (const at of [UUID_AT, HASH_SEED_AT]) copy.write(crypto.randomUUID().replaceAll('-', ''), at, 'hex')
  copy.writeUInt32LE(crc32c(copy.subarray(0, CHECKSUM_AT)), CHECKSUM_AT)
  return copy
}

const POLYNOMIAL = 0x82f63b78

/** ext4's checksum: CRC-32C without the final inversion. */
function crc32c(bytes: Uint8Array): number {
  let sum = 0xffffffff
  for (const byte of bytes) {
    sum ^= byte
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? POLYNOMIAL : 0)
  }
  return sum >>> 0
}
