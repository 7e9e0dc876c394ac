import type { Runtime } from '../../core/runtime.ts'
import type { AppServer } from '../app-server.ts'
import type { Traffic } from '../traffic.ts'
import type { Step } from './step.ts'

/** Gives model calls of sandboxes to the gateway. They show a run's token, which is no key, so they are not admitted. */
export const gateway =
  ({ config, gateway }: Runtime, traffic: Traffic, server: AppServer): Step =>
  async ({ received, request }, next) => {
    const isCall = config.publicUrl !== undefined && new URL(request.url).pathname.startsWith('/gateway/')
    if (!isCall) return await next()
    let isAdmitted = false
    const response = await gateway.handle(request, 'public', () => {
      isAdmitted = true
      server.timeout?.(received, 0)
    })
    return isAdmitted ? traffic.flow(received, response) : response
  }
