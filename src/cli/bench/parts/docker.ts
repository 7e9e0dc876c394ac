import { LeftOut, type Part } from '../part.ts'
import { createApart } from './create.ts'

/** Measures creates on a Docker engine, when there is one. */
export const docker: Part = {
  rounds: 1,
  async measure({ sizes, openPlace, record }) {
    const { DOCKER_HOST = 'unix:///var/run/docker.sock' } = process.env
    if (!(await answers(DOCKER_HOST))) throw new LeftOut(`no Docker engine answers at ${DOCKER_HOST}`)
    const place = await openPlace(['--backend=docker'])
    try {
      await using server = await place.serve()
      const { firsts, bashes } = await createApart(server, sizes.spacedCreates)
      record('create-docker', firsts, bashes)
    } finally {
      await place.close()
    }
  },
}

/** An engine with TLS is assumed to answer: the server itself says what is wrong. */
async function answers(host: string): Promise<boolean> {
  const [, unix] = /^unix:\/\/(.+)$/.exec(host) ?? []
  if (unix === undefined) return true
  const response = await fetch('http://docker/_ping', { unix }).catch(() => undefined)
  return response?.ok ?? false
}
