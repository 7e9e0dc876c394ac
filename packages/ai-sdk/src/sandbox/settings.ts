import { createServer, type Server } from '../server.ts'

interface Connection {
  /** The server's address, such as `https://threadbox.example.com`. */
  baseUrl: string
  /** A key with the scope `sandboxes`; with `secrets` too, harnesses can keep their credentials out of the sandbox. */
  apiKey: string
  /**
   * The ports that adapters may use; an adapter with a bridge takes the first one. Any port of a sandbox can be opened, so this
   * list is for adapters and not a limit. By default `[4000]`.
   */
  ports?: readonly number[]
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch
}

/** Settings that give each session its own sandbox. */
interface Created extends Connection {
  /**
   * The slug of the agent whose image, files, set-up, limits and rules the sandboxes have. By default `echo`, which every server
   * has.
   */
  agent?: string
  /** Variables, which replace the agent's of the same name. */
  envs?: Record<string, string>
  /** Files by absolute path, which replace the agent's of the same path. */
  files?: Record<string, string>
  /** Commands that run after the agent's own set-up. */
  setup?: readonly string[]
  /**
   * After how many milliseconds without use a sandbox is removed. By default the agent's value, else the sandbox stays until it
   * is destroyed.
   */
  timeoutMs?: number
  /** The hosts that the sandboxes may reach. The agent's own rules must allow them too. */
  networkAllowOut?: readonly string[]
  networkDenyOut?: readonly string[]
  /** Secrets that the server puts into requests to the hosts they are bound to. No sandbox has them. */
  secrets?: readonly object[]
  sandbox?: never
}

/** Settings for a sandbox that the caller has made and keeps: it is neither stopped nor deleted. */
interface Wrapped extends Connection {
  /** The sandbox's id. */
  sandbox: string
}

export type ThreadboxSandboxSettings = Created | Wrapped

export const DEFAULT_AGENT = 'echo'
const DEFAULT_PORTS = [4000]

export const portsOf = ({ ports = DEFAULT_PORTS }: ThreadboxSandboxSettings): number[] => [...ports]

export const serverOf = ({ baseUrl, apiKey, fetch }: ThreadboxSandboxSettings): Server =>
  createServer({ baseUrl, credential: apiKey, fetch })
