import type { Loan } from '../async/shared-memory.ts'
import type { Caller } from '../core/access/caller.ts'
import type { Visitor } from '../core/sandboxes/preview-links.ts'
import { findPreviewAddress, type PreviewAddress } from './preview/address.ts'

/** What is known about one request. Each step adds what it finds out, for the steps and the route after it. */
export interface RequestContext {
  /** The request as the server received it: the server finds its connection by this object. */
  readonly received: Request
  /** The request as all steps and the router read it. */
  readonly request: Request
  /** The preview that the request is for. */
  readonly preview: PreviewAddress | undefined
  /** Who sent the request; undefined before admission, and on paths that are open to anyone. */
  admission?: Admission
  /** Counts the memory that the request's body takes. */
  bodyMemory?: Loan
  /** The request's part of what its key may have open at once. */
  share?: Disposable
}

export interface Admission {
  /** The key or token that the request came with, or that made its link. */
  caller: Caller
  /** Set when the request came by a link, which opens one preview and nothing else. */
  visitor?: Visitor
  /** Whether the key, token or link is still good: a WebSocket may outlive it. */
  isValid(): boolean
}

/** Elysia gives a route the request alone, so the route finds its context by it. */
const contexts = new WeakMap<Request, RequestContext>()

/** Makes a request's context. `request` is `received` in a form that the router reads right. */
export function createContext(received: Request, request: Request): RequestContext {
  const context: RequestContext = { received, request, preview: findPreviewAddress(request) }
  contexts.set(request, context)
  return context
}

export const findContext = (request: Request): RequestContext | undefined => contexts.get(request)

/** Throws for a request that did not come through the app. */
export function getContext(request: Request): RequestContext {
  const context = findContext(request)
  if (!context) throw new Error('a request without a context')
  return context
}
