import { beforeAll, describe, expect, test } from 'bun:test'
import { importDebian } from '../support/docker-images.ts'
import { useDockerd } from '../support/dockerd.ts'
import { executable, patiently } from '../support/server.ts'
import { withoutProgress } from './progress.ts'

patiently()

const dockerd = useDockerd()
beforeAll(() => importDebian(dockerd.api), 120_000)

/** What docs/ci.md says to give a job that itself runs in a container. `docker run` makes no masked paths of systempaths=unconfined. */
const unconfined = { SecurityOpt: ['seccomp=unconfined', 'apparmor=unconfined'], MaskedPaths: [], ReadonlyPaths: [] }
const volume = { Mounts: [{ Type: 'volume', Target: '/tmp' }] }
const mayMount = { CapAdd: ['SYS_ADMIN'] }

const script = `
cd /
threadbox exec -- sh -c 'echo hi; id -u; exit 3' 2>&1 </dev/null
code=$?
for each in /tmp/threadbox-* /run/threadbox/*; do [ ! -e "$each" ] || echo "left: $each"; done
exit $code`

/** A job of `threadbox exec` in a container, with all that it says. */
async function job(host: Record<string, unknown>, user: string) {
  const { ask } = dockerd.api
  const { Id } = await ask(
    'POST',
    '/containers/create',
    JSON.stringify({
      Image: 'debian',
      User: user,
      Cmd: ['sh', '-c', script],
      // Its output comes without frames.
      Tty: true,
      HostConfig: { NetworkMode: 'none', Binds: [`${executable}:/usr/local/bin/threadbox:ro`], ...host },
    }),
  )
  await ask('POST', `/containers/${Id}/start`)
  const { StatusCode: code } = await ask('POST', `/containers/${Id}/wait`)
  const said: string = await ask('GET', `/containers/${Id}/logs?stdout=1`)
  await ask('DELETE', `/containers/${Id}?v=1`)
  return { code, said: withoutProgress(said).replaceAll('\r\n', '\n') }
}

describe.if(process.getuid?.() === 0)('in a container of Docker', () => {
  test.each([
    ['an ordinary user', '1000', { ...unconfined, ...volume }],
    ['root', '0', { ...unconfined, ...mayMount, ...volume }],
  ])('%s with what docs/ci.md names runs a command', async (_, user, host) => {
    expect(await job(host, user)).toEqual({ code: 3, said: 'hi\n0\n' })
  })

  const rows: [string, string, Record<string, unknown>, RegExp[]][] = [
    [
      'a plain one',
      '0',
      {},
      [/nsjail: clone.*not permitted/, /remedy: .*seccomp=unconfined.*apparmor=.*systempaths=.*SYS_ADMIN/, /--volume/],
    ],
    [
      'one without a volume',
      '1000',
      unconfined,
      [/threadbox: FAILED +data directory: .* is on an overlay/, /--volume/],
    ],
    [
      'a root’s without a volume',
      '0',
      { ...unconfined, ...mayMount },
      [/threadbox: FAILED +data directory/, /--volume/],
    ],
    [
      'one that may mount under the default profile',
      '0',
      { ...mayMount, ...volume, MaskedPaths: [], ReadonlyPaths: [] },
      [/nsjail: pivot_root.*not permitted/, /remedy: .*seccomp=unconfined/],
    ],
    [
      'one whose directory for temporary files runs no programs',
      '1000',
      { ...unconfined, Tmpfs: { '/tmp': '' } },
      [/nsjail: EACCES/, /remedy: .*noexec.*--tmpfs \/tmp:exec/],
    ],
  ]
  test.each(rows)('%s is told all that it lacks, with the remedies', async (_, user, host, wanted) => {
    const { code, said } = await job(host, user)
    expect(code).toBe(125)
    for (const words of wanted) expect(said).toMatch(words)
    expect(said).not.toContain('left:')
  })
})
