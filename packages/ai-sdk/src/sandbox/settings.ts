import { createServer, type Server } from '../server.ts'

interface Connection {
  /** Where the server is, as `https://threadbox.example.com`. */
  baseUrl: string
  /** A key with the scope `sandboxes`; with `secrets` too, harnesses can keep their credentials out of the sandbox. */
  apiKey: string
  /**
   * The ports inside that adapters may use; those with a bridge take the first one. Any port of a sandbox can be opened, so these are
   * names for the adapters and no limit. Default: `[4000]`.
   */
  ports?: readonly number[]
  /** In place of the global `fetch`. */
  fetch?: typeof fetch
}

/** Where each session has a sandbox of its own. */
interface Created extends Connection {
  /** The slug of the agent whose image, files, set-up, limits and rules the sandboxes have. Default: `echo`, which every server has. */
  agent?: string
  /** Variables, in place of the agent's of the same name. */
  envs?: Record<string, string>
  /** Files by their absolute path, in place of the agent's of the same path. */
  files?: Record<string, string>
  /** Commands after the agent's own set-up. */
  setup?: readonly string[]
  /** A sandbox goes when it was not used for so many milliseconds. Default: the agent's, else it stays until it is destroyed. */
  timeoutMs?: number
  /** What the sandboxes may reach, beside the agent's own rules: both must allow. */
  networkAllowOut?: readonly string[]
  networkDenyOut?: readonly string[]
  /** Secrets that the server puts into requests to the hosts that they are bound to, and that no sandbox has. */
  secrets?: readonly object[]
  sandbox?: never
}

/** Where the caller has made the sandbox, and keeps it: it is neither stopped nor deleted. */
interface Wrapped extends Connection {
  /** Its id. */
  sandbox: string
}

export type ThreadboxSandboxSettings = Created | Wrapped

export const DEFAULT_AGENT = 'echo'
const DEFAULT_PORTS = [4000]

export const portsOf = ({ ports = DEFAULT_PORTS }: ThreadboxSandboxSettings): number[] => [...ports]

export const serverOf = ({ baseUrl, apiKey, fetch }: ThreadboxSandboxSettings): Server =>
  createServer({ baseUrl, credential: apiKey, fetch })
