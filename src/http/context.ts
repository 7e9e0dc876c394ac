import type { Loan } from '../async/shared-memory.ts'
import type { Caller } from '../core/access/caller.ts'
import { newRequestId } from '../core/observe/request-id.ts'
import type { Visitor } from '../core/sandboxes/preview-links.ts'
import type { E2bTarget } from './e2b/target.ts'
import type { Flow } from './flow.ts'
import { findPreviewAddress, type PreviewAddress } from './preview/address.ts'

/** What is known about one request. Each step adds what it finds out, for the steps and the route after it. */
export interface RequestContext {
  /** The request's id, in its answer, in logs and in observations. */
  readonly id: string
  /** The request as the server received it: the server finds its connection by this object. */
  readonly received: Request
  /** The request as all steps and the router read it. */
  readonly request: Request
  /** The caller's address, as `findAddress` finds it; undefined when its connection was closed already. */
  readonly address: string | undefined
  /** The preview that the request is for. */
  readonly preview: PreviewAddress | undefined
  /** What a request of E2B's clients is for; undefined for any other request. */
  readonly e2b: E2bTarget | undefined
  /** Who sent the request; undefined before admission, and on paths that are open to anyone. */
  admission?: Admission
  /** Counts the memory that the request's body takes. */
  bodyMemory?: Loan
  /** What the request takes of its key's limit on open work. It is disposed of when the answer has ended. */
  share?: DisposableStack
  /** Starts the flow of the request's answer. A route whose body follows the flow by itself takes this away. */
  startFlow?: () => Flow
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
export function createContext(
  received: Request,
  request: Request,
  { address, e2b }: { address?: string | undefined; e2b?: E2bTarget | undefined } = {},
): RequestContext {
  const preview = e2b ? undefined : findPreviewAddress(request)
  const context: RequestContext = { id: newRequestId(), received, request, address, preview, e2b }
  contexts.set(request, context)
  return context
}

export const findContext = (request: Request): RequestContext | undefined => contexts.get(request)

/** Hands the flow of the answer to the route, which passes it to its body. Throws for a request without a key. */
export function takeFlow(request: Request): Flow {
  const context = getContext(request)
  const { startFlow } = context
  delete context.startFlow
  if (!startFlow) throw new Error('a request without a flow')
  return startFlow()
}

/** Throws for a request that did not come through the app. */
export function getContext(request: Request): RequestContext {
  const context = findContext(request)
  if (!context) throw new Error('a request without a context')
  return context
}
