import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** An authority of a test's own, in a directory of its own. */
export class Authority {
  readonly certFile: string

  constructor(readonly directory: string) {
    this.certFile = join(directory, 'ca.crt')
    this.#openssl(
      ...['req', '-x509', '-days', '3650', '-subj', '/CN=authority', '-addext', 'keyUsage=keyCertSign'],
      ...['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'ca.key', '-out', 'ca.crt'],
    )
  }

  /** Writes NAME.crt and NAME.key for this machine. */
  issue(name: string, days = 365): { cert: string; key: string } {
    writeFileSync(join(this.directory, 'names'), 'subjectAltName=DNS:localhost,IP:127.0.0.1')
    this.#openssl(
      ...['req', '-subj', `/CN=${name}`, '-nodes', '-keyout', `${name}.key`, '-out', `${name}.csr`],
      ...['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'],
    )
    this.#openssl(
      ...['x509', '-req', '-in', `${name}.csr`, '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial'],
      ...['-days', `${days}`, '-out', `${name}.crt`, '-extfile', 'names'],
    )
    return { cert: join(this.directory, `${name}.crt`), key: join(this.directory, `${name}.key`) }
  }

  #openssl(...args: string[]): void {
    const { exitCode, stderr } = Bun.spawnSync(['openssl', ...args], { cwd: this.directory, stderr: 'pipe' })
    if (exitCode !== 0) throw new Error(`openssl ${args[0]}: ${stderr}`)
  }
}
