import { beforeAll, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { until } from '../support/until.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
})
const at = (path: string) => `/v1/sandboxes/${id}/files?path=${encodeURIComponent(path)}&format=tar`

test('a directory comes as a tar archive, with its modes, links and odd names', async () => {
  await app.shell(
    id,
    `mkdir -p '/odd/-a b' && cd /odd && echo 1 > '-a b/x' && ln -s -- x '-a b/l' && chmod -- 750 '-a b/x'`,
  )
  const response = await app.request('GET', at('/odd'))
  expect(response.headers.get('content-type')).toBe('application/x-tar')
  const archive = new Blob([await response.arrayBuffer()])
  await app.ask('POST', `/v1/sandboxes/${id}/files?path=/copy.tar&format=stream`, archive)
  const script = `mkdir /copy && tar -xf /copy.tar -C /copy && cd /copy && stat -c '%a %N' -- '-a b/x' '-a b/l'; cat -- '-a b/x'`
  expect(await app.shell(id, script)).toBe(`750 '-a b/x'\n777 '-a b/l' -> 'x'\n1\n`)
})

test('the root comes without what the kernel makes up: regression', async () => {
  // The host's programs have gigabytes, which say nothing here.
  const small = `printf '#!/bin/sh\\nexec /usr/bin/tar --exclude="./usr/*" "$@"' > /usr/local/bin/tar; chmod +x /usr/local/bin/tar`
  await app.shell(id, `mkdir -p /mine/proc && echo kept > /mine/proc/file; ${small}`)
  for (const path of ['/', '/usr/..']) {
    const response = await app.request('GET', at(path))
    const tar = Bun.spawn(['tar', '-t'], { stdin: response, stdout: 'pipe' })
    const names = (await tar.stdout.text()).split('\n')
    expect(await tar.exited).toBe(0)
    for (const name of ['./mine/proc/file', './etc/passwd', './proc/', './usr/']) expect(names).toContain(name)
    expect(names.filter(name => /^\.\/(proc|sys|dev)\/./.test(name))).toEqual([])
  }
  await app.shell(id, 'rm /usr/local/bin/tar')
})

test('a file and a directory that is not there are refused', async () => {
  expect(codeOf(await app.ask('GET', at('/etc/hostname')))).toBe('400 invalid_request')
  expect(codeOf(await app.ask('GET', at('/nothing')))).toBe('404 file_not_found')
})

test('tar ends when its reader goes away', async () => {
  await app.shell(id, 'mkdir /big && head -c 300000000 /dev/zero > /big/zeros')
  const response = await app.request('GET', at('/big'))
  const reader = response.body!.getReader()
  await reader.read()
  await reader.cancel()
  await until(async () => (await app.shell(id, 'pgrep -x tar || echo none')).trim() === 'none')
})
