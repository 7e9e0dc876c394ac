import type { GatewaySession } from '../../gateway/gateway.ts'
import type { EngineEnd, EngineEvent, ModelAccess } from '../../plugin-api/index.ts'

type Events = AsyncGenerator<EngineEvent, EngineEnd>

/**
 * An engine's turn with what its model calls use among its events: the gateway's own count, as soon as it is known, also
 * of a turn that is cancelled or throws. After `signal` no call goes on. A turn to which a budget refused a call has failed.
 */
export async function* meteredTurn(
  open: () => GatewaySession,
  signal: AbortSignal,
  run: (openModel: () => ModelAccess) => Events,
): Events {
  let session: GatewaySession | undefined
  const usage = (): EngineEvent[] => {
    const used = session?.takeUsage()
    return used ? [{ type: 'usage', ...used }] : []
  }
  let wake = () => {}
  signal.addEventListener('abort', () => wake(), { once: true })
  // A race with one long-lived promise would keep something of every event until that settles.
  const beforeAbort = (next: Promise<unknown>) =>
    new Promise<boolean>(resolve => {
      wake = () => resolve(false)
      if (signal.aborted) wake()
      const done = () => resolve(true)
      next.then(done, done)
    })
  const events = run(() => {
    signal.throwIfAborted()
    session ??= open()
    return session.access
  })
  let isAborted = false
  try {
    for (;;) {
      const next = events.next()
      // An engine may take its time to end, or never do so: its calls are over, and counted, at once.
      if (!isAborted && !(await beforeAbort(next))) {
        isAborted = true
        await session?.close()
        yield* usage()
      }
      const step = await next
      if (step.done) {
        await session?.close()
        yield* usage()
        return endOf(step.value, session)
      }
      yield* usage()
      // The gateway has counted it.
      if (step.value.type !== 'usage' || !session) yield step.value
    }
  } catch (error) {
    await session?.close()
    yield* usage()
    throw error
  } finally {
    await session?.close()
    await events.return({ status: 'cancelled' })
  }
}

function endOf(end: EngineEnd, session: GatewaySession | undefined): EngineEnd {
  if (!session?.refusal || end.status === 'cancelled') return end
  return { status: 'failed', error: { code: 'budget_exceeded', message: session.refusal } }
}
