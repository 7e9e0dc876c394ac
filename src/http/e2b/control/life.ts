import { Elysia } from 'elysia'
import {
  connectE2bSandbox,
  createE2bSandbox,
  pauseE2bSandbox,
  removeE2bSandbox,
  setE2bNetwork,
  setE2bTimeout,
} from '../../../core/e2b/sandboxes.ts'
import type { Runtime } from '../../../core/runtime.ts'
import { json, optionalJson } from '../../body.ts'
import { getCaller } from '../../caller.ts'
import { describeAccess } from './answers.ts'
import { readCreate, readRules } from './create.ts'
import { ChangeNetwork, Connect, CreateSandbox, Pause, Refresh, SandboxParams, Timeout } from './schema.ts'

/** The default time to live, in the older form of the API and in the newer one. */
const OLD_SECONDS = 15
const NEW_SECONDS = 300

const params = { params: SandboxParams }
const nothing = () => new Response(null, { status: 204 })

/** Routes that make, keep and end sandboxes, in the older and the newer form. */
export const lifeRoutes = (runtime: Runtime) =>
  new Elysia()
    .use(creation(runtime, { prefix: '/sandboxes', seconds: OLD_SECONDS }))
    .use(creation(runtime, { prefix: '/v2/sandboxes', seconds: NEW_SECONDS }))
    .post(
      '/sandboxes/:sandboxID/resume',
      async ({ request, params: { sandboxID }, body: { timeout = OLD_SECONDS, autoPause }, status }) => {
        const caller = getCaller(request)
        const known = await connectE2bSandbox(runtime, caller, sandboxID, {
          timeoutMs: timeout * 1000,
          isOnlyPaused: true,
          ...(autoPause != null && { onEnd: autoPause ? 'pause' : 'kill' }),
        })
        return status(201, describeAccess(runtime, caller, known))
      },
      { ...params, ...optionalJson(Connect) },
    )
    .post(
      '/sandboxes/:sandboxID/timeout',
      async ({ request, params: { sandboxID }, body: { timeout } }) => {
        await setE2bTimeout(runtime, getCaller(request), sandboxID, { timeoutMs: timeout * 1000 })
        return nothing()
      },
      { ...params, ...json(Timeout) },
    )
    .post(
      '/sandboxes/:sandboxID/refreshes',
      async ({ request, params: { sandboxID }, body: { duration = OLD_SECONDS } }) => {
        await setE2bTimeout(runtime, getCaller(request), sandboxID, { timeoutMs: duration * 1000, isOnlyLonger: true })
        return nothing()
      },
      { ...params, ...optionalJson(Refresh) },
    )
    .post(
      '/sandboxes/:sandboxID/pause',
      async ({ request, params: { sandboxID } }) => {
        await pauseE2bSandbox(runtime, getCaller(request), sandboxID)
        return nothing()
      },
      { ...params, ...optionalJson(Pause) },
    )
    .put(
      '/sandboxes/:sandboxID/network',
      async ({ request, params: { sandboxID }, body }) => {
        await setE2bNetwork(runtime, getCaller(request), sandboxID, readRules(body))
        return nothing()
      },
      { ...params, ...json(ChangeNetwork) },
    )
    .delete(
      '/sandboxes/:sandboxID',
      async ({ request, params: { sandboxID } }) => {
        await removeE2bSandbox(runtime, getCaller(request), sandboxID)
        return nothing()
      },
      params,
    )

/** The two routes that differ between the forms. */
const creation = (runtime: Runtime, { prefix, seconds }: { prefix: string; seconds: number }) =>
  new Elysia()
    .post(
      prefix,
      async ({ request, body, status }) => {
        const caller = getCaller(request)
        const known = await createE2bSandbox(runtime, caller, readCreate(body, seconds), request.signal)
        return status(201, describeAccess(runtime, caller, known))
      },
      json(CreateSandbox),
    )
    .post(
      `${prefix}/:sandboxID/connect`,
      async ({ request, params: { sandboxID }, body: { timeout = seconds }, status }) => {
        const caller = getCaller(request)
        const known = await connectE2bSandbox(runtime, caller, sandboxID, { timeoutMs: timeout * 1000 })
        return status(known.wasPaused ? 201 : 200, describeAccess(runtime, caller, known))
      },
      { ...params, ...optionalJson(Connect) },
    )
