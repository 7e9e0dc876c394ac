import { guestCommand } from '../../src/guest/host/install.ts'
import { rootCapabilities } from '../../src/guest/host/root-capabilities.ts'
import { TOKEN_VARIABLE } from '../../src/guest/wire/token-variable.ts'
import { GUEST_VOLUME, guestLinkName } from './guest-volume.ts'
import type { Image } from './image.ts'
import { type CreatedWith, labels } from './labels.ts'
import { isolationOf } from './runtime.ts'

/** Where the guest's volume is in every container: in the fresh tmpfs that is /dev, whatever the image has. */
const VOLUME_INSIDE = '/dev/.threadbox'
export const guestDirectoryInside = (dataId: string): string => `${VOLUME_INSIDE}/${guestLinkName(dataId)}`

/** The variable that holds the image's variables as JSON. */
export const ENVIRONMENT_VARIABLE = 'THREADBOX_ENVIRONMENT'

/** A user that no image has; see `withGuest` in guest-volume.ts. */
const BRIDGE_USER = '65533:65533'

/** Part of the process limit for the guest and the bridge: their threads, and commands that are being started. */
const OWN_PROCESSES = 64
/**
 * Settings of the guest's JavaScript engine. It makes threads for its collector and its compiler when it wants them, and aborts where
 * the kernel refuses one: a fork bomb that fills the container's process limit would end the guest.
 */
const withoutHelperThreads = ['BUN_JSC_numberOfGCMarkers=1', 'BUN_JSC_useConcurrentGC=0', 'BUN_JSC_useConcurrentJIT=0']
const MIB = 1024 * 1024
const HOSTNAME = 'sandbox'
const SHARED_MEMORY_BYTES = 64 * MIB

const guestMount = {
  Type: 'volume',
  Source: GUEST_VOLUME,
  Target: VOLUME_INSIDE,
  ReadOnly: true,
  VolumeOptions: { NoCopy: true },
}

/**
 * The guest gets these on gVisor, where the network belongs to gVisor's own kernel: it redirects connections there, and drops these
 * rights before anything else runs.
 */
const networkCapabilities = ['NET_ADMIN', 'NET_RAW']

export interface ContainerSpec {
  id: string
  dataId: string
  image: Image
  createdWith: CreatedWith
  /** The profile, or its file; undefined for the engine's own. */
  seccomp: string | undefined
  /** Directories whose volumes begin empty, whatever the image contains there. */
  emptyVolumes?: readonly string[]
}

export const containerName = (environmentId: string): string => `threadbox-${environmentId}`

/** The body of `POST /containers/create`. It names no path and no network of the engine's host. */
export function containerBody({ id, dataId, image, createdWith, seccomp, emptyVolumes = [] }: ContainerSpec): object {
  const { memoryMb, processes, cpus, diskMb } = createdWith.limits
  const token = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')
  return {
    Hostname: HOSTNAME,
    Image: image.id,
    Entrypoint: [...guestCommand(guestDirectoryInside(dataId)), 'container'],
    Cmd: [],
    User: '0:0',
    WorkingDir: '/',
    Env: [
      // A name alone removes a variable: the image's variables are for commands, not for the guest and its loader.
      ...Object.keys(image.env),
      `${ENVIRONMENT_VARIABLE}=${JSON.stringify(image.env)}`,
      `${TOKEN_VARIABLE}=${token}`,
      ...withoutHelperThreads,
    ],
    StopSignal: 'SIGKILL',
    Healthcheck: { Test: ['NONE'] },
    Labels: { [labels.data]: dataId, [labels.environment]: id, [labels.createdWith]: JSON.stringify(createdWith) },
    HostConfig: {
      ...(createdWith.runtime !== undefined && { Runtime: createdWith.runtime }),
      NetworkMode: 'none',
      // The guest listens at this address. The search domains of the engine's machine are of no use inside.
      Dns: ['127.0.0.1'],
      DnsOptions: ['edns0'],
      DnsSearch: ['.'],
      ExtraHosts: [`${HOSTNAME}:127.0.0.1`],
      IpcMode: 'private',
      CapDrop: ['ALL'],
      CapAdd: [...rootCapabilities, ...(isolationOf(createdWith.runtime) === 'gvisor' ? networkCapabilities : [])],
      SecurityOpt: ['no-new-privileges', ...(seccomp === undefined ? [] : [`seccomp=${seccomp}`])],
      ShmSize: SHARED_MEMORY_BYTES,
      // Read when a guest does not start.
      LogConfig: { Type: 'json-file', Config: { 'max-size': '64k', 'max-file': '1' } },
      Mounts: [
        guestMount,
        ...emptyVolumes.map(Target => ({ Type: 'volume', Target, VolumeOptions: { NoCopy: true } })),
      ],
      ...(memoryMb !== undefined && { Memory: memoryMb * MIB, MemorySwap: memoryMb * MIB }),
      ...(processes !== undefined && { PidsLimit: processes + OWN_PROCESSES }),
      ...(cpus !== undefined && { NanoCpus: Math.round(cpus * 1e9) }),
      ...(diskMb !== undefined && {
        // Also where there is a quota: it does not hold for the files of the engine's own that are /etc/hosts and the like.
        Ulimits: [{ Name: 'fsize', Soft: diskMb * MIB, Hard: diskMb * MIB }],
        ...(createdWith.hasQuota && { StorageOpt: { size: `${diskMb}M` } }),
      }),
    },
  }
}

/** The body of `POST /containers/:id/exec`: the bridge, which joins a connection to the guest. */
export const bridgeBody = (guestDirectory: string): object => ({
  AttachStdin: true,
  AttachStdout: true,
  AttachStderr: true,
  User: BRIDGE_USER,
  WorkingDir: '/',
  Cmd: [...guestCommand(guestDirectory), 'bridge'],
})

export const redirectorName = (container: string): string => `${container}-network`

/**
 * The body of `POST /containers/create` for what redirects connections in the network of a container. It shares nothing else with
 * it, so nothing inside can meddle with what has more rights.
 */
export const redirectorBody = (container: string, image: Image, dataId: string): object => ({
  Image: image.id,
  // The image's variables are not meant for this container.
  Env: Object.keys(image.env),
  Entrypoint: [...guestCommand(guestDirectoryInside(dataId)), 'redirect'],
  Cmd: [],
  User: '0:0',
  WorkingDir: '/',
  AttachStdout: true,
  AttachStderr: true,
  StopSignal: 'SIGKILL',
  Healthcheck: { Test: ['NONE'] },
  Labels: { [labels.data]: dataId },
  HostConfig: {
    NetworkMode: `container:${container}`,
    AutoRemove: true,
    ReadonlyRootfs: true,
    // The container changes settings of its network below /proc/sys.
    ReadonlyPaths: [],
    CapDrop: ['ALL'],
    CapAdd: ['NET_ADMIN'],
    SecurityOpt: ['no-new-privileges'],
    LogConfig: { Type: 'none' },
    Mounts: [guestMount],
  },
})
