import { Elysia } from 'elysia'
import { version } from '../../../package.json'
import type { Runtime } from '../../core/runtime.ts'

/** The only route without authentication. */
export const healthRoutes = ({ diskSpace, loop }: Runtime) =>
  new Elysia({ prefix: '/health' }).get('/', () => ({
    status: 'ok',
    version,
    disk: diskSpace.state.level,
    ...(loop && { eventLoopDelayMs: loop.delayMs() }),
  }))
