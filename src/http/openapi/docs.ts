import { Elysia } from 'elysia'
import { once } from '../../async/once.ts'
import { DESCRIPTION, docsPaths } from './docs-paths.ts'
import type { Route } from './document.ts'

/**
 * `GET /v1/openapi.json`, and `GET /v1/docs` that shows it with Swagger UI: it works without a network, and needs a key only
 * to call the API from it. Both are made at the first request, because they would take a third of a server's start.
 */
export function docsRoutes(routes: readonly Route[], publicUrl: string | undefined) {
  const pages = once(async () => (await import('./docs-pages.ts')).docsPages(routes, publicUrl))
  const answer = async ({ request }: { request: Request }) => await (await pages()).handle(request)
  const router = new Elysia()
  for (const path of [DESCRIPTION, ...docsPaths]) router.get(path, answer, { detail: { hide: true } })
  return router
}
