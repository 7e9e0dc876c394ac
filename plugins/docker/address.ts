import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { messageOf } from '../../src/errors.ts'

/** Where an engine listens. */
export type Address = { socket: string } | { host: string; port: number; tls?: Certificates }

/** Certificates as PEM texts. */
export interface Certificates {
  ca: string
  cert: string
  key: string
}

export type Variables = Readonly<Record<string, string | undefined>>

const DEFAULT_HOST = 'unix:///var/run/docker.sock'

/** DOCKER_HOST, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH as docker's own programs read them. Throws with what is wrong. */
export function readAddress({ DOCKER_HOST, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH, HOME }: Variables): Address {
  const host = DOCKER_HOST || DEFAULT_HOST
  const socket = /^unix:\/\/(\/.+)$/.exec(host)?.[1]
  if (socket !== undefined) return { socket }
  const url = /^(tcp|https?):\/\/./.test(host) ? URL.parse(host.replace(/^tcp/, 'http')) : null
  if (!url) throw new Error(`DOCKER_HOST must be unix:///PATH or tcp://HOST:PORT, not ${host}`)
  const isTls = Boolean(DOCKER_TLS_VERIFY) || url.protocol === 'https:'
  const port = Number(url.port) || (isTls ? 2376 : 2375)
  const name = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (!isTls) return { host: name, port }
  const directory = DOCKER_CERT_PATH || join(HOME || homedir(), '.docker')
  return { host: name, port, tls: readCertificates(directory) }
}

function readCertificates(directory: string): Certificates {
  const read = (name: string) => readFileSync(join(directory, name), 'utf8')
  try {
    return { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem') }
  } catch (error) {
    throw new Error(`DOCKER_CERT_PATH: ${messageOf(error)}`)
  }
}

/** The address as DOCKER_HOST has it. */
export const describeAddress = (address: Address): string =>
  'socket' in address ? `unix://${address.socket}` : `tcp://${address.host}:${address.port}`
