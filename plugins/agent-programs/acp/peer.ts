import { type JsonObject, objectOf } from '../../../src/read/json.ts'
import type { Program } from '../program.ts'

/** The program answered a request with an error. */
export class PeerError extends Error {}

/** JSON-RPC 2.0 with a program, one message a line, requests in both directions. */
export interface Peer {
  /** Resolves to the result. Rejects with a PeerError when the program answers with an error, with an Error when it ends first. */
  call(method: string, params: object): Promise<JsonObject>
  notify(method: string, params: object): void
}

export interface PeerHandlers {
  /** Answers a request of the program by `reply`, now or later. False: there is no such method. */
  request(method: string, params: JsonObject, reply: (result: object) => void): boolean
  notification(method: string, params: JsonObject): void
}

const METHOD_NOT_FOUND = { code: -32601, message: 'There is no such method.' }

export function createPeer(program: Program, handlers: PeerHandlers): Peer {
  const waiting = new Map<number, PromiseWithResolvers<JsonObject>>()
  let lastId = 0

  program.onMessage = ({ id, method, params, result, error }) => {
    const given = objectOf(params) ?? {}
    if (typeof method === 'string') {
      if (id === undefined || id === null) return handlers.notification(method, given)
      if (handlers.request(method, given, result => program.send({ jsonrpc: '2.0', id, result }))) return
      return program.send({ jsonrpc: '2.0', id, error: METHOD_NOT_FOUND })
    }
    const call = typeof id === 'number' ? waiting.get(id) : undefined
    if (!call) return
    waiting.delete(Number(id))
    if (error === undefined) call.resolve(objectOf(result) ?? {})
    else call.reject(new PeerError(describeError(objectOf(error) ?? {})))
  }
  void program.ended.then(reason => {
    for (const call of waiting.values()) call.reject(new Error(reason))
    waiting.clear()
  })

  return {
    call(method, params) {
      const id = ++lastId
      const call = Promise.withResolvers<JsonObject>()
      if (program.isAlive) waiting.set(id, call)
      else void program.ended.then(reason => call.reject(new Error(reason)))
      program.send({ jsonrpc: '2.0', id, method, params })
      return call.promise
    },
    notify: (method, params) => program.send({ jsonrpc: '2.0', method, params }),
  }
}

const MAX_ERROR_CHARS = 1000

/** Many programs only write "Internal error" as the message, and the cause in `data`. */
function describeError({ message, data }: JsonObject): string {
  const more = typeof data === 'string' ? data : (objectOf(data)?.message ?? objectOf(data)?.details)
  return (
    [message, more]
      .filter(each => typeof each === 'string')
      .join(': ')
      .slice(0, MAX_ERROR_CHARS) || 'unknown error'
  )
}
