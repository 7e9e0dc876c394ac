/** Rows of `threadbox bench` on the backend docker, then Docker's own tools, on an engine that lives as long as this. */
import { importBusybox } from '../../test/support/docker-images.ts'
import { Dockerd } from '../../test/support/dockerd.ts'
import { executable } from './server.ts'
import { line, report, timed } from './table.ts'

const PARTS = ['exec', 'create', 'stopped', 'memory']
const TIMES = 10

const dockerd = new Dockerd({})
const env = { ...process.env, DOCKER_HOST: dockerd.host }

async function run(...command: string[]): Promise<void> {
  const child = Bun.spawn(command, { env, stdio: ['ignore', 'inherit', 'inherit'] })
  if ((await child.exited) !== 0) throw new Error(`${command.slice(0, 3).join(' ')} failed`)
}

try {
  await dockerd.open()
  await importBusybox(dockerd.api)
  await run(executable, 'bench', '--backend', 'docker', '--docker-image', 'busybox', ...PARTS)
  await run('docker', 'run', '--detach', '--name', 'own', 'busybox', 'sleep', '1000')
  const execs = line('docker exec: true')
  const runs = line('docker run --rm: true')
  await timed(execs, TIMES, () => run('docker', 'exec', 'own', 'true'))
  await timed(runs, TIMES, () => run('docker', 'run', '--rm', 'busybox', 'true'))
  await run('docker', 'rm', '--force', 'own')
  report([execs, runs])
} finally {
  await dockerd.close()
}
