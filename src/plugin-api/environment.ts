import type { Duplex } from 'node:stream'
import type { EnvironmentCode } from './code.ts'
import type { Isolation } from './isolation.ts'
import type { Limits } from './limits.ts'
import type { NetworkSpec } from './network.ts'
import type { SandboxProcess, SpawnOptions } from './process.ts'
import type { EnvironmentProcesses } from './processes.ts'

/**
 * An isolated place where an agent works: it starts processes, and has files and ports.
 *
 * @example
 * // The least that a backend has to make; the guest's connection brings `spawn`, `files` and `connect`.
 * const guest = await connectGuest(socket, { onProxy: each => context.serveProxy(id, each) })
 * const environment: Environment = {
 *   id,
 *   confinement: ['a microVM of its own'],
 *   spawn: guest.spawn,
 *   files: guest.files,
 *   connect: guest.connect,
 *   destroy: () => machine.remove(),
 * }
 */
export interface Environment {
  readonly id: string
  /** What confines it and what could not be limited here, as text for the operator. */
  readonly confinement: string[]
  /** The environment's isolation class. Absent when it is the backend's. */
  readonly isolation?: Isolation
  /** Why it does not run, or did not start. Absent or undefined: all is well. */
  readonly trouble?: string | undefined
  spawn(command: SpawnOptions): Promise<SandboxProcess>
  /** The command that runs threadbox's own executable inside, without arguments. Absent where it is not inside. */
  readonly executable?: readonly string[]
  readonly files: EnvironmentFiles
  /** Absent: the server keeps processes itself, over `spawn`, and they end when the server ends. */
  readonly processes?: EnvironmentProcesses
  /** A byte stream to a server on the environment's loopback. Rejects with `port_unreachable` when nothing listens. */
  connect(port: number): Promise<Duplex>
  /**
   * Where others reach a port without this server. Absent: nowhere. Does not check that something listens there; rejects
   * when the environment is gone.
   */
  hostOf?(port: number): Promise<PortHost>
  /** Makes the socket of an SSH agent inside, which the server answers, and returns its path. Absent when there is no such agent. */
  openSshAgent?(): Promise<string>
  /** Ends every process and keeps the files; the next use starts it again. */
  pause?(): Promise<void>
  /** Resolves when the files that were written inside so far outlast a loss of power. Absent: this is not known. */
  sync?(): Promise<void>
  /** Replaces what it may reach; the new rules hold when it resolves. Only for a backend whose egress is `own`. */
  setNetwork?(network: NetworkSpec): Promise<void>
  /** Absent: environments of this backend cannot run code cells. */
  readonly code?: EnvironmentCode
  /** The environment's limits. Absent when nobody knows them. */
  readonly limits?: Limits
  /** Measures quickly, without starting the environment, what it uses now. Empty when it does not run. Absent when nobody can tell. */
  usage?(): Promise<EnvironmentUsage>
  /**
   * Idempotent. When it resolves, no process is left, and the files are out of reach, also of a new environment of its id. What
   * then remains of them and of mounts and cgroups may go in the background, or with the next start after a crash.
   */
  destroy(): Promise<void>
}

/** Measures of an environment's use. A field is absent when the backend cannot measure it. */
export interface EnvironmentUsage {
  /** Memory in use, without the part that the kernel gives back when memory is short. */
  memoryBytes?: number
  /** The space that its files take. */
  diskBytes?: number
  /** The CPU time that its processes took so far. It starts at zero again after a restart. */
  cpuMs?: number
  /** The CPU cores in use now, in fractions. It replaces `cpuMs`. */
  cpus?: number
  /** Processes and their threads. */
  processes?: number
}

export interface PortHost {
  url: string
  /** Each request must send these. They open the port to everyone who has them, for as long as the environment exists. */
  headers: Record<string, string>
}

export interface FileInfo {
  name: string
  path: string
  type: 'file' | 'dir'
  size: number
  mode: number
  /** In the format of ls: `-rw-r--r--`. */
  permissions: string
  owner: string
  group: string
  modifiedTime: string
  symlinkTarget?: string
  /** Where a link leads in the end, as an absolute path. Only with details; absent when nothing is there. */
  resolvedTarget?: string
  /** The attributes that callers keep with the file. Only with details. */
  attributes?: Readonly<Record<string, string>>
}

/** Says how a file is written, apart from its bytes. */
export interface WriteDetails {
  /** The user who owns the file afterwards, and directories that are made for it. Ignored where there is no such user. */
  owner?: string
  /** Kept with the file in place of what was; an environment that cannot throws invalid_request. */
  attributes?: Readonly<Record<string, string>>
}

export interface FileChange {
  /** The path relative to the watched directory. The directory itself is `.`. */
  name: string
  type: 'create' | 'write' | 'remove' | 'rename' | 'chmod'
}

/**
 * File operations. They run inside the environment, so a link can only lead to what is inside. Paths are absolute.
 *
 * @example
 * await environment.files.write('/home/user/notes.md', new TextEncoder().encode('# Notes'))
 * const { body } = await environment.files.read('/home/user/notes.md')
 * const text = await new Response(body).text()
 */
export interface EnvironmentFiles {
  /** Reads a regular file. Rejects at once for a missing file, a directory, a FIFO and a device. */
  read(path: string, signal?: AbortSignal): Promise<{ size: number; body: ReadableStream<Uint8Array> }>
  /**
   * Writes a file in one step: until the whole body has come, the path keeps its old content, also after a body that
   * breaks, an abort and a full disk. Makes the parents; keeps the owner and mode of a file that it replaces. Resolves to
   * the size in bytes.
   */
  write(
    path: string,
    body: Uint8Array | ReadableStream<Uint8Array>,
    signal?: AbortSignal,
    details?: WriteDetails,
  ): Promise<number>
  info(path: string, options?: { details?: boolean }): Promise<FileInfo | undefined>
  /** Lists what is below a directory, down to `depth` levels (1, the default: its own entries), sorted by path. */
  list(path: string, depth?: number, options?: { details?: boolean }): Promise<FileInfo[]>
  /** Makes the parents too. Resolves to false when the directory existed already. */
  makeDirectory(path: string, details?: Pick<WriteDetails, 'owner'>): Promise<boolean>
  rename(from: string, to: string): Promise<void>
  /** Removes a file, or a directory with everything in it. */
  remove(path: string): Promise<void>
  /**
   * Resolves once each later change in a directory will be seen, and below it when `isRecursive`. The changes end when the directory
   * is removed and with the signal; they fail when some were lost. Absent: the environment cannot watch.
   */
  watch?(path: string, options: { isRecursive: boolean; signal: AbortSignal }): Promise<AsyncIterable<FileChange[]>>
}
