import { beforeAll } from 'bun:test'
import { importDebian } from '../../support/docker-images.ts'
import { useDockerd } from '../../support/dockerd.ts'
import { describeProgram } from './describe-program.ts'
import { describeProof } from './proof.ts'

/** Run by scripts/agent-programs. */
const { THREADBOX_TEST_PROGRAM: name = '', THREADBOX_TEST_ROUNDS = '3', THREADBOX_TEST_BACKEND } = process.env
const rounds = Number(THREADBOX_TEST_ROUNDS)

if (THREADBOX_TEST_BACKEND === 'docker') {
  const dockerd = useDockerd()
  beforeAll(() => importDebian(dockerd.api), 120_000)
  const flags = ['--backend', 'docker', '--docker-image', 'debian']
  describeProof(name, rounds, { flags, env: { DOCKER_HOST: dockerd.host } })
} else {
  describeProgram(name)
  describeProof(name, rounds)
}
