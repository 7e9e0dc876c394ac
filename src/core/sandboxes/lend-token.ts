import { parseHost } from '../../egress/rules.ts'
import { PROXY_HOST, PROXY_PORT } from '../../guest/wire/proxy-variables.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Runtime } from '../runtime.ts'
import { makePlaceholder } from '../secrets/placeholder.ts'
import { bundleFor } from '../trust/put-trust.ts'

/** A token that git in a sandbox can use at one host until this is disposed of, without having it. */
export interface LentToken extends AsyncDisposable {
  /** The password that git sends in place of the token. */
  placeholder: string
  /** Variables that configure git. */
  env: Record<string, string>
  /** Texts that are removed from git's output, because they mean nothing to its reader. */
  words: readonly string[]
  /** Whether a connection failed because this server does not trust the host's certificate. */
  isDistrusted(): boolean
}

const HTTPS_PORT = 443

/**
 * The requests with which git and git-lfs read a repository, on any host. Another program that learns the placeholder can neither
 * write nor use the host's API.
 */
const reading = {
  methods: ['GET', 'POST'],
  paths: ['info/refs', 'git-upload-pack', 'HEAD', 'objects/**', 'info/lfs/objects/**'].map(path => `/**/${path}`),
}

/**
 * Lends a token to git in a sandbox, for one host and by https. Undefined where this server does not end TLS: for plain http, for
 * an address, for a server inside the sandbox, and on a backend whose sandboxes reach the network by themselves.
 */
export async function lendToken(
  { trust, environments, backends, egress }: Pick<Runtime, 'trust' | 'environments' | 'backends' | 'egress'>,
  sandbox: Sandbox,
  url: string,
  token: string,
): Promise<LentToken | undefined> {
  const { protocol, hostname, port: portText } = URL.parse(url) ?? {}
  const host = hostname === undefined ? undefined : parseHost(hostname)
  if (protocol !== 'https:' || !host || host.address || /(^|\.)localhost$/.test(host.name)) return undefined
  if (backends.get(sandbox.backend)?.egress === 'own') return undefined
  const port = Number(portText || HTTPS_PORT)
  const placeholder = makePlaceholder(token)
  const { environmentId, envs } = sandbox
  const loan = await trust.lend(environmentId, {
    name: 'git clone',
    hosts: [`${host.name}:${port}`],
    as: { env: TOKEN_VARIABLE },
    ...reading,
    placeholder,
    value: () => token,
  })
  if (!loan) return undefined
  const begunAt = new Date().toISOString()
  const { files } = await environments.get(sandbox)
  const bundle = `/tmp/.threadbox-ca-${crypto.randomUUID()}.crt`
  try {
    const pem = await bundleFor(files, loan.authority, envs.GIT_SSL_CAINFO ?? envs.SSL_CERT_FILE)
    await files.write(bundle, Buffer.from(pem))
  } catch (error) {
    loan[Symbol.dispose]()
    throw error
  }
  return {
    placeholder,
    env: { GIT_SSL_CAINFO: bundle, ...proxyVariables(loan.pass, envs) },
    words: [placeholder, loan.pass],
    isDistrusted: () =>
      egress
        .decisions(environmentId)
        .some(
          ({ at, reason, ...of }) => at >= begunAt && isUntrusted(reason) && of.host === host.name && of.port === port,
        ),
    async [Symbol.asyncDispose]() {
      loan[Symbol.dispose]()
      await files.remove(bundle).catch(() => {})
    },
  }
}

export const TOKEN_VARIABLE = 'THREADBOX_GIT_TOKEN'

/** Matches no other failure: a program inside could break connections off to make this server give the token to git. */
const isUntrusted = (reason = '') =>
  /^no safe connection to it: .*\b(?:UNABLE_TO_GET_ISSUER_CERT(?:_LOCALLY)?|UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT)\b/.test(
    reason,
  )

/** Makes git use the proxy with the pass, whatever other proxy it is configured with. */
function proxyVariables(pass: string, envs: Readonly<Record<string, string>>): Record<string, string> {
  const proxy = `http://clone:${pass}@${PROXY_HOST}:${PROXY_PORT}`
  const count = Number(envs.GIT_CONFIG_COUNT ?? 0) || 0
  return {
    ...{ HTTPS_PROXY: proxy, https_proxy: proxy, NO_PROXY: '', no_proxy: '' },
    // Without this, git would wait until the proxy asks for the pass.
    GIT_HTTP_PROXY_AUTHMETHOD: 'basic',
    GIT_CONFIG_COUNT: String(count + 1),
    [`GIT_CONFIG_KEY_${count}`]: 'http.proxy',
    [`GIT_CONFIG_VALUE_${count}`]: proxy,
  }
}
