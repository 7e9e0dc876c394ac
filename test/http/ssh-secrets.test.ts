import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ssh2 from 'ssh2'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'

const app = useApp()
const key = ssh2.utils.generateKeyPairSync('ed25519')
/** Some text of the key that is nowhere else. */
const hidden = key.private.split('\n')[3] ?? ''
const deploy = { secret: 'DEPLOY', hosts: ['git.example.com'], as: { ssh: { user: 'git' } } }

const set = (name: string, value: string) => app.ask('PUT', `/v1/secrets/${name}`, { value })
const create = (secrets: unknown) => app.ask('POST', '/v1/sandboxes', { agent: 'echo', secrets })

test('a binding for SSH wants a private key, a user, and host keys that are keys', async () => {
  await set('DEPLOY', key.private)
  await set('WORD', 'no key at all')
  const wrong: [object, RegExp][] = [
    [{ ...deploy, secret: 'WORD' }, /WORD does not fit: it is no private key of OpenSSH or PEM/],
    [{ ...deploy, as: { ssh: {} } }, /user/],
    [{ ...deploy, as: { ssh: { user: 'a\nb' } } }, /ssh.user/],
    [{ ...deploy, as: { ssh: { user: 'git', hostKeys: ['AAAA'] } } }, /must be a public key/],
    [{ ...deploy, as: { ssh: { user: 'git' }, env: 'KEY' } }, /one of header/],
    [{ ...deploy, methods: ['GET'] }, /ssh has no methods, paths and when/],
    [{ ...deploy, hosts: ['10.0.0.1'] }, /an address/],
  ]
  for (const [binding, reason] of wrong) {
    const answer = await create([binding])
    expect([codeOf(answer), answer.body.message]).toEqual(['400 invalid_request', expect.stringMatching(reason)])
  }
})

test('a sandbox has an agent with the public half, and the private one is nowhere: regression', async () => {
  const { id } = (await create([deploy])).body
  const listed = await app.shell(id, 'ssh-add -L')
  expect(listed.split(' ')[1]).toBe(key.public.split(' ')[1]!)
  const started = (await app.ask('POST', `/v1/sandboxes/${id}/processes`, { command: 'ssh-add -l; sleep 100' })).body
  const search = `grep -rlsF -e '${hidden.slice(0, 20)}''${hidden.slice(20)}' /etc /home /root /run /tmp /var /proc/[0-9]*/environ /proc/[0-9]*/cmdline; true`
  expect(await app.shell(id, search)).toBe('')
  const shown = await app.ask('GET', `/v1/sandboxes/${id}`)
  const output = await app.ask('GET', `/v1/sandboxes/${id}/processes/${started.pid}`)
  expect(JSON.stringify([shown.body, output.body, app.log])).not.toContain(hidden)
  const files = readdirSync(app.directory, { withFileTypes: true }).filter(each => each.isFile())
  expect(files.length).toBeGreaterThan(0)
  for (const { name } of files) expect(readFileSync(join(app.directory, name)).includes(hidden)).toBe(false)
})

test('a key that is removed is gone from the agent of a running sandbox at once', async () => {
  const { id } = (await create([deploy])).body
  expect(await app.shell(id, 'ssh-add -l')).toContain('DEPLOY')
  await app.ask('DELETE', '/v1/secrets/DEPLOY')
  expect((await app.exec(id, 'ssh-add -l')).stdout).toBe('The agent has no identities.\n')
})
