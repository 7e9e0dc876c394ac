import { Elysia } from 'elysia'
import { version } from '../../package.json'

/** The only route without authentication. */
export const healthRoutes = () => new Elysia({ prefix: '/health' }).get('/', () => ({ status: 'ok', version }))
