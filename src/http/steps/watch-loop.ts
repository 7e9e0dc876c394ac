import type { EventLoop } from '../../core/runtime.ts'
import type { Step } from './step.ts'

/** Tells the watchdog which request begins now, so that it can name the one that blocks the event loop. */
export const watchLoop =
  (loop: EventLoop | undefined): Step =>
  async ({ request }, next) => {
    loop?.entered(describeRequest(request))
    return await next()
  }

const MAX_PATH_LENGTH = 150

/** For the operator: the beginning of the path, without a preview's link, which is a secret. */
function describeRequest({ method, url }: Request): string {
  const path = new URL(url).pathname.slice(0, MAX_PATH_LENGTH)
  return `${method} ${path.split('/ports/', 1)[0]}`
}
