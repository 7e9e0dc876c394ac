import { Elysia } from 'elysia'
import { version } from '../../../package.json'
import type { Runtime } from '../../core/runtime.ts'
import { createReadiness } from '../../core/server/readiness.ts'
import type { AppServer } from '../app-server.ts'

/** The routes without authentication. */
export const healthRoutes = (runtime: Runtime, { isClosing }: Pick<AppServer, 'isClosing'>) => {
  const { diskSpace, loop } = runtime
  const findReadiness = createReadiness(runtime)
  return new Elysia({ prefix: '/health' })
    .get('/', () => ({
      status: 'ok',
      version,
      disk: diskSpace.state.level,
      ...(loop && { eventLoopDelayMs: loop.delayMs() }),
    }))
    .get('/ready', async ({ status }) => {
      const { reasons, unavailable } = isClosing?.()
        ? { reasons: ['the server is shutting down'], unavailable: [] }
        : await findReadiness()
      const more = unavailable.length > 0 && { unavailable }
      return reasons.length === 0
        ? { status: 'ready', ...more }
        : status(503, { status: 'not_ready', reasons, ...more })
    })
}
