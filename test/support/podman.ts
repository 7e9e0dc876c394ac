import { afterAll, beforeAll } from 'bun:test'
import { chmodSync, globSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dockerApi } from './docker-api.ts'
import { diskDirectory, removeTraces, run } from './dockerd.ts'
import { until } from './until.ts'

/** Root of a machine that does not let it raise limits: Podman asks for more files and processes than there may be. */
const runtime = `#!/bin/bash
for word; do
  case $previous in
    --bundle) spec=$word/config.json ;;
    --process) spec=$word ;;
  esac
  previous=$word
done
lower() { sed -i -E "s/(\\"RLIMIT_$1\\",\\"hard\\":)[0-9]+(,\\"soft\\":)[0-9]+/\\1$2\\2$2/" "$spec"; }
[ -z "$spec" ] || { lower NOFILE "$(ulimit -Hn)"; lower NPROC "$(ulimit -Hu)"; }
exec runc "$@"
`

/** Podman's socket for Docker's clients, with nothing of the machine's, for the tests of a file. */
export function usePodman() {
  const directory = mkdtempSync(join(diskDirectory, 'threadbox-podman-'))
  const at = (name: string) => join(directory, name)
  const socket = at('podman.sock')
  const api = dockerApi(socket)

  beforeAll(async () => {
    writeFileSync(at('runtime'), runtime)
    chmodSync(at('runtime'), 0o755)
    writeFileSync(
      at('storage.conf'),
      `[storage]\ndriver = "overlay"\nrunroot = "${at('run')}"\ngraphroot = "${at('data')}"\n`,
    )
    const engine = { cgroup_manager: 'cgroupfs', events_logger: 'none', runtime: 'limited', tmp_dir: at('tmp') }
    writeFileSync(
      at('containers.conf'),
      [
        '[engine]',
        ...Object.entries(engine).map(([name, value]) => `${name} = "${value}"`),
        `static_dir = "${at('data/libpod')}"`,
        `volume_path = "${at('data/volumes')}"`,
        `[engine.runtimes]\nlimited = ["${at('runtime')}"]\n`,
      ].join('\n'),
    )
    Bun.spawn(['podman', 'system', 'service', '--time=0', `unix://${socket}`], {
      env: { ...process.env, CONTAINERS_STORAGE_CONF: at('storage.conf'), CONTAINERS_CONF: at('containers.conf') },
      stdio: ['ignore', 'ignore', Bun.file(at('log'))],
    })
    await until(() =>
      api.ask('GET', '/_ping').then(
        () => true,
        () => false,
      ),
    )
  }, 60_000)
  afterAll(async () => {
    await removeTraces(directory)
    // Its own, and of no other Podman unless it is empty.
    for (const path of globSync('/sys/fs/cgroup/{,*/}libpod_parent'))
      await run('find', path, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', ';').catch(() => {})
  }, 60_000)
  return { host: `unix://${socket}`, api }
}
