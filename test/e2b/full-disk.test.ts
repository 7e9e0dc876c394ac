import { expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { sdks, useOptions } from './sdks.ts'

const app = useApp(['--disk-mb', '32'])
const options = useOptions(app)
/** More than its reader takes before the disk is full, so that the answer comes while it is being sent. */
const large = new Blob(Array.from({ length: 80 }, () => new Uint8Array(1_000_000)))

test.each(sdks)('a full disk is said to be so, and the file stays as it was: e2b %s', async (_, sdk) => {
  const sandbox = await sdk.Sandbox.create('base', options)
  const { files } = sandbox
  await files.write('kept', 'what was there')
  for (const form of [{}, { useOctetStream: true }])
    await expect(files.write('kept', large, form)).rejects.toBeInstanceOf(sdk.NotEnoughSpaceError)
  expect(await files.read('kept')).toBe('what was there')
  await sandbox.kill()
})
