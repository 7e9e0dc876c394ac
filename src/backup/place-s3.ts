import type { BackupPlace, StoredFile } from './backup-place.ts'
import { timeOfFile } from './format.ts'

const MB = 1024 * 1024
/** S3 takes 10,000 parts: with parts of this size, half a terabyte. */
const PART_BYTES = 64 * MB
const PARTS_AT_ONCE = 2
const RETRIES = 5

/**
 * Backups in a bucket, below a prefix. Keys, region and endpoint are those of Bun: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
 * AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT, or the same with S3_. A multipart upload that is cut leaves no object.
 */
export function bucketPlace(bucket: string, prefix: string, environment: NodeJS.ProcessEnv): BackupPlace {
  const find = (name: string) => environment[`S3_${name}`] ?? environment[`AWS_${name}`]
  const [accessKeyId, secretAccessKey] = [find('ACCESS_KEY_ID'), find('SECRET_ACCESS_KEY')]
  const [sessionToken, region, endpoint] = [find('SESSION_TOKEN'), find('REGION'), find('ENDPOINT')]
  if (!accessKeyId || !secretAccessKey) throw new Error('s3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set')
  const client = new Bun.S3Client({
    ...{ bucket, accessKeyId, secretAccessKey },
    ...(sessionToken && { sessionToken }),
    ...(region && { region }),
    ...(endpoint && { endpoint }),
  })
  const keyOf = (name: string) => (prefix === '' ? name : `${prefix}/${name}`)

  return {
    describe: name => `s3://${bucket}/${keyOf(name)}`,
    async list() {
      const found: StoredFile[] = []
      for (let after: string | undefined; ; ) {
        const page = await client.list({ prefix: keyOf('threadbox-backup-'), ...(after && { startAfter: after }) })
        for (const { key, size = 0 } of page.contents ?? []) {
          const name = key.slice(keyOf('').length)
          if (timeOfFile(name)) found.push({ name, bytes: size })
        }
        after = page.contents?.at(-1)?.key
        // Some servers do not sort by name.
        if (!page.isTruncated || after === undefined) return found.sort((a, b) => (a.name < b.name ? -1 : 1))
      }
    },
    async write(name, bytes) {
      const file = client.file(keyOf(name))
      if (await file.exists()) throw new Error(`s3://${bucket}/${keyOf(name)} is there already`)
      const writer = file.writer({ partSize: PART_BYTES, queueSize: PARTS_AT_ONCE, retry: RETRIES })
      let written = 0
      // Without `end`, the uploaded parts become no object.
      for await (const piece of bytes) {
        await writer.write(piece)
        await writer.flush()
        written += piece.byteLength
      }
      await writer.end()
      const { size } = await file.stat()
      if (size !== written) throw new Error(`s3://${bucket}/${keyOf(name)} has ${size} bytes, and not ${written}`)
      return written
    },
    read: async name => client.file(keyOf(name)).stream(),
    remove: name => client.delete(keyOf(name)),
  }
}
