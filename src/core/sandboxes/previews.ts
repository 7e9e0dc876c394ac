import type { Duplex } from 'node:stream'
import type { PortHost } from '../../plugin-api/index.ts'
import type { Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'
import { assertLeadsTo, type Visitor } from './preview-links.ts'
import { getSandbox } from './sandboxes.ts'
import { useSandbox } from './use-sandbox.ts'

/** A moving connection counts as a use of the sandbox, no more often than this. */
const TOUCH_EVERY_MS = 1000

/** A connection to a server in a sandbox. `moved` is to be called when bytes move: its time to live starts again. */
export interface Preview {
  stream: Duplex
  moved(): void
}

/** By key, token or link. Throws port_unreachable when nothing listens there. */
export async function openPreview(
  runtime: Runtime,
  who: { caller: Caller; visitor?: Visitor | undefined },
  { sandboxId, port }: { sandboxId: string; port: number },
): Promise<Preview> {
  const { id, timeoutMs } = getSandbox(runtime, who.caller, sandboxId)
  if (who.visitor) assertLeadsTo(who.visitor, id, port)
  using use = await useSandbox(runtime, who.caller, sandboxId)
  const { hold } = use
  const stream = await use.environment.connect(port)
  // Its reader or writer gets the error; a destroyed stream may have neither.
  stream.on('error', () => {})
  let touched = performance.now()
  return {
    stream,
    moved() {
      if (timeoutMs === undefined || performance.now() - touched < TOUCH_EVERY_MS) return
      touched = performance.now()
      hold()[Symbol.dispose]()
    },
  }
}

/** Where a port is reached without this server. Undefined where it is not, and for a token: what opens it outlives that. */
export async function findHost(
  runtime: Runtime,
  caller: Caller,
  { sandboxId, port }: { sandboxId: string; port: number },
): Promise<PortHost | undefined> {
  if (caller.token) return undefined
  const environment = await runtime.environments.get(getSandbox(runtime, caller, sandboxId))
  return await environment.hostOf?.(port)
}
