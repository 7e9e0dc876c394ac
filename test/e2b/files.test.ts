import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { until } from '../support/until.ts'
import { NEWEST, type Sdk, sdks, useOptions } from './sdks.ts'

const app = useApp()
const options = useOptions(app)
const owner = process.getuid?.() === 0 ? 'user' : 'root'

// Of the older ones, how they send and ask for files; matrix.test.ts uses each method of each.
describe.each(sdks)('files by the SDK %s', (version, sdk) => {
  let sandbox: InstanceType<Sdk['Sandbox']>
  beforeAll(async () => {
    sandbox = await sdk.Sandbox.create('base', options)
  })
  afterAll(() => sandbox.kill())

  test('a file is written and read in every form', async () => {
    const { files } = sandbox
    const written = await files.write('dir/ü ñ.txt', 'text ü')
    expect(written).toMatchObject({ name: 'ü ñ.txt', path: '/home/user/dir/ü ñ.txt', type: 'file' })
    expect(await files.read('dir/ü ñ.txt')).toBe('text ü')
    expect(await files.read('/home/user/dir/ü ñ.txt', { format: 'bytes' })).toEqual(new TextEncoder().encode('text ü'))
    expect(await (await files.read('~/dir/ü ñ.txt', { format: 'blob' })).text()).toBe('text ü')
    expect(await new Response(await files.read('dir/ü ñ.txt', { format: 'stream' })).text()).toBe('text ü')
    await files.write('empty', '')
    expect(await files.read('empty')).toBe('')
    expect((await files.read('empty', { format: 'bytes' })).byteLength).toBe(0)
    await files.write('of-root', 'x', { user: 'root' })
    expect((await files.getInfo('/root/of-root', { user: 'root' })).owner).toBe('root')
    expect(await files.read('/proc/sys/kernel/ostype')).toBe('Linux\n')
  })

  if (version !== NEWEST) return

  test('a short file comes with its length, packed or not', async () => {
    const text = 'abcdefghij'.repeat(10_000)
    await sandbox.files.write('short', text)
    const url = await sandbox.downloadUrl('short')
    for (const encoding of ['identity', 'gzip']) {
      const response = await fetch(url, { headers: { 'accept-encoding': encoding }, decompress: false } as RequestInit)
      const bytes = new Uint8Array(await response.arrayBuffer())
      expect(response.headers.get('content-length')).toBe(String(bytes.byteLength))
      expect(Buffer.from(encoding === 'gzip' ? Bun.gunzipSync(bytes) : bytes).toString()).toBe(text)
    }
  })

  test('large files and many files', async () => {
    const { files } = sandbox
    const bytes = crypto.getRandomValues(new Uint8Array(60_000))
    const large = new Blob(Array.from({ length: 100 }, () => bytes))
    await files.write('large', large)
    expect(Bun.hash(await files.read('large', { format: 'bytes' }))).toBe(Bun.hash(await large.bytes()))
    const many = Array.from({ length: 60 }, (_, index) => ({ path: `many/${index % 7}/${index}`, data: `${index}` }))
    expect(await files.write(many)).toHaveLength(60)
    expect((await sandbox.commands.run('cat $(find many -type f) | wc -c')).stdout).toBe('110\n')
  })

  test('a missing file, a directory and a bad path are refused', async () => {
    const { files } = sandbox
    await files.makeDir('some')
    await expect(files.read('none')).rejects.toBeInstanceOf(sdk.NotFoundError)
    await expect(files.read('some')).rejects.toBeInstanceOf(sdk.InvalidArgumentError)
    await expect(files.write('some', 'x')).rejects.toBeInstanceOf(sdk.InvalidArgumentError)
    await expect(files.getInfo('none')).rejects.toBeInstanceOf(sdk.NotFoundError)
    await expect(files.list('none')).rejects.toBeInstanceOf(sdk.NotFoundError)
    await expect(files.list('/etc/passwd')).rejects.toBeInstanceOf(sdk.InvalidArgumentError)
    await expect(files.rename('none', 'other')).rejects.toBeInstanceOf(sdk.NotFoundError)
    await expect(files.read('x', { user: 'nobody-there' })).rejects.toBeInstanceOf(sdk.AuthenticationError)
    await files.remove('none')
  })

  test('entries say what they are', async () => {
    const { files } = sandbox
    await files.write('about/file', 'hello')
    await sandbox.commands.run('cd about; ln -s file link; ln -s /none broken; mkdir -p a/b/c')
    expect(await files.getInfo('about/file')).toMatchObject({
      ...{ name: 'file', type: 'file', path: '/home/user/about/file', size: 5, mode: 0o644, permissions: '-rw-r--r--' },
      ...{ owner, group: owner },
    })
    expect((await files.getInfo('about/file')).modifiedTime!.getTime()).toBeCloseTo(Date.now(), -5)
    expect(await files.getInfo('about')).toMatchObject({ type: 'dir', permissions: 'drwxr-xr-x', mode: 0o755, owner })
    expect((await files.getInfo('about/link')).symlinkTarget).toBe('/home/user/about/file')
    const names = async (depth?: number) =>
      (await files.list('about', { ...(depth !== undefined && { depth }) })).map(({ path }) => path.slice(17))
    expect(await names()).toEqual(expect.arrayContaining(['a', 'file', 'link']))
    expect(await names(2)).toContain('a/b')
    expect(await names(2)).not.toContain('a/b/c')
    expect(await names(3)).toContain('a/b/c')
  })

  test('directories are made, moved and removed', async () => {
    const { files } = sandbox
    expect(await files.makeDir('made/below')).toBe(true)
    expect(await files.makeDir('made/below')).toBe(false)
    expect(await files.exists('made')).toBe(true)
    expect(await files.rename('made', 'moved')).toMatchObject({ name: 'moved', type: 'dir', path: '/home/user/moved' })
    expect(await files.exists('made')).toBe(false)
    await files.remove('moved')
    expect(await files.exists('moved')).toBe(false)
  })

  test('changes of a directory are seen', async () => {
    const { files } = sandbox
    await files.makeDir('watched/below')
    const seen: string[] = []
    let exits = 0
    const handle = await files.watchDir('watched', ({ type, name }) => void seen.push(`${type} ${name}`), {
      recursive: true,
      onExit: () => void exits++,
    })
    await files.write('watched/file', 'one')
    await files.write('watched/file', 'two')
    await files.write('watched/below/other', 'x')
    await files.remove('watched/file')
    await until(() => seen.includes('remove file'))
    expect(seen.filter(each => /^(create|write) file$/.test(each))).toEqual(['create file', 'write file', 'write file'])
    expect(seen).toContain('create below/other')
    await handle.stop()
    await until(() => exits === 1)
    await expect(files.watchDir('watched/none', () => {})).rejects.toBeInstanceOf(sdk.NotFoundError)
    await expect(files.watchDir('/etc/passwd', () => {})).rejects.toBeInstanceOf(sdk.InvalidArgumentError)
    const short = await files.watchDir('watched', () => {}, { timeoutMs: 3000, onExit: () => void exits++ })
    await until(() => exits === 2)
    await short.stop()
  })

  test('signed URLs open one file each, until they expire', async () => {
    const up = await sandbox.uploadUrl('signed.txt', { useSignatureExpiration: 60 })
    const form = new FormData()
    form.append('file', new Blob(['signed']), 'signed.txt')
    const uploaded = await fetch(up, { method: 'POST', body: form })
    expect(await uploaded.json()).toEqual([{ name: 'signed.txt', path: '/home/user/signed.txt', type: 'file' }])
    expect(await (await fetch(await sandbox.downloadUrl('signed.txt'))).text()).toBe('signed')
    const asRoot = await sandbox.downloadUrl('of-root', { user: 'root', useSignatureExpiration: 60 })
    expect(await (await fetch(asRoot)).text()).toBe('x')
    const down = new URL(await sandbox.downloadUrl('signed.txt', { useSignatureExpiration: 60 }))
    const refusedWith = async (change: (url: URL) => void, init: RequestInit = {}) => {
      const url = new URL(down)
      change(url)
      const response = await fetch(url, init)
      return [response.status, ((await response.json()) as { code: number }).code]
    }
    const set = (name: string, value: string) => (url: URL) => url.searchParams.set(name, value)
    expect(await refusedWith(set('path', 'of-root'))).toEqual([401, 401])
    expect(await refusedWith(set('username', 'root'))).toEqual([401, 401])
    expect(await refusedWith(set('signature_expiration', '9999999999'))).toEqual([401, 401])
    expect(await refusedWith(() => {}, { method: 'POST', body: form })).toEqual([401, 401])
    const old = new URL(await sandbox.downloadUrl('signed.txt', { useSignatureExpiration: -5 }))
    const expired = await fetch(old)
    expect([expired.status, await expired.json()]).toEqual([
      401,
      { code: 401, message: 'signature is already expired' },
    ])
  })

  test('gzip both ways, and bodies of bytes', async () => {
    const { files } = sandbox
    const text = 'compress me '.repeat(20_000)
    await files.write('gzipped', text, { gzip: true })
    expect(await files.read('gzipped', { gzip: true })).toBe(text)
    expect(await files.read('gzipped')).toBe(text)
    await files.write('bytes', new Blob([text]), { useOctetStream: true })
    expect((await files.getInfo('bytes')).size).toBe(text.length)
  })

  test('git works on a repository', async () => {
    await sandbox.git.init('repository', { initialBranch: 'main' })
    await sandbox.files.write('repository/file', 'x')
    await sandbox.git.configureUser('Anna', 'anna@example.com', { scope: 'local', path: 'repository' })
    await sandbox.git.add('repository')
    await sandbox.git.commit('repository', 'first')
    await sandbox.git.createBranch('repository', 'other')
    const status = await sandbox.git.status('repository')
    expect(status).toMatchObject({ currentBranch: 'other', isClean: true })
    expect((await sandbox.git.branches('repository')).branches.toSorted()).toEqual(['main', 'other'])
  })

  test('metadata stays with a file until it is written anew', async () => {
    const { files } = sandbox
    const written = await files.write('tagged', 'x', { metadata: { author: 'anna', stage: '' } })
    expect(written.metadata).toEqual({ author: 'anna', stage: '' })
    expect((await files.getInfo('tagged')).metadata).toEqual({ author: 'anna', stage: '' })
    expect((await files.list('.')).find(({ name }) => name === 'tagged')?.metadata?.author).toBe('anna')
    await files.write('tagged', 'y')
    expect((await files.getInfo('tagged')).metadata).toBeUndefined()
  })

  test('a change comes with its entry', async () => {
    const { files } = sandbox
    await files.makeDir('entries')
    const sizes: (number | undefined)[] = []
    const handle = await files.watchDir('entries', ({ entry }) => void sizes.push(entry?.size), {
      includeEntry: true,
    })
    await files.write('entries/file', 'four')
    await until(() => sizes.includes(4))
    await handle.stop()
  })
})
