import type { Duplex } from 'node:stream'
import type { PluginContext } from '../../plugin-api/index.ts'

/** Takes a process's connection to the proxy's address. When the signal is there, it cuts the connection. */
export type OnProxy = (socket: Duplex, signal?: AbortSignal) => void

/** Takes a process's connection to any address; the address is the guest's claim. The signal cuts the connection. */
export type OnDirect = (socket: Duplex, destination: { address: string; port: number }, signal?: AbortSignal) => void

/** Answers one DNS message of a process inside. Undefined when it gets no answer. */
export type AnswerName = (message: Uint8Array, transport: 'udp' | 'tcp') => Promise<Uint8Array | undefined>

/** The services for processes of one environment that reach out. */
export interface Outlets {
  onProxy: OnProxy
  /** Takes connections to any address. When it is absent, only the proxy leads anywhere. */
  onDirect?: OnDirect
  /** Answers name look-ups. When it is absent, the guest answers that no name can be resolved. */
  answerName?: AnswerName
  /** Takes a connection that a process inside made to its SSH agent's socket. Without it there is no such socket. */
  onSshAgent?: (socket: Duplex) => void
}

/** The parts of a plugin's context that serve environments' connections to the outside. */
export type OutletContext = Partial<Pick<PluginContext, 'serveProxy' | 'serveDirect' | 'answerName' | 'serveSshAgent'>>

/** The outlets of one environment. Without `serveProxy` connections to the proxy are closed. */
export function outletsOf(
  { serveProxy, serveDirect, answerName, serveSshAgent }: OutletContext,
  environmentId: string,
): Outlets {
  return {
    onProxy: (socket, signal) => (serveProxy ? serveProxy(environmentId, socket, signal) : void socket.destroy()),
    ...(serveDirect && {
      onDirect: (socket, destination, signal) => serveDirect(environmentId, socket, destination, signal),
    }),
    ...(serveSshAgent && { onSshAgent: socket => serveSshAgent(environmentId, socket) }),
    ...(answerName && { answerName: (message, transport) => answerName(environmentId, message, transport) }),
  }
}
