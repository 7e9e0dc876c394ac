import { isObject, type JsonObject, objectOf } from '../read/json.ts'
import type { ErrorStatus } from './error-response.ts'
import type { Route } from './routes.ts'

/** A call's body, checked. */
export interface Admitted {
  /** Written anew from what was checked: the provider must not read another model in it than was read here. */
  body: string
  maxOutputTokens: number
}

/** Why a call is rejected. */
export interface Rejected {
  status: ErrorStatus
  message: string
}

/** The largest body of one call. */
export const MAX_BODY_BYTES = 32 * 1024 * 1024

/** Reserved for a call that names no limit of its own. */
const USUAL_OUTPUT_TOKENS = 16_384

/** Checks a call's body against what its run may do, and adds what metering needs. */
export function admit(route: Route, modelId: string, body: unknown): Admitted | Rejected {
  if (!isObject(body)) return { status: 400, message: 'The body is not a JSON object.' }
  const asked = route.model ?? body.model
  if (asked !== modelId && !route.anyModel) return { status: 403, message: `This run's model is ${modelId}.` }
  // A router tries the next model of a list when the first one fails, and a caller can make it fail.
  if ('models' in body || 'fallbacks' in body)
    return { status: 403, message: 'A call must name one model: fallbacks are not supported.' }
  // What happens after the answer is not metered.
  if (body.background === true) return { status: 403, message: 'Background calls are not supported.' }
  // The limit of tokens, and so the budget's reservation, is for one answer.
  if (countAnswers(body) > 1) return { status: 403, message: 'A call must ask for one answer.' }
  const isChatStream = route.wire === 'openai-chat' && body.stream === true
  const options = isChatStream && { stream_options: { ...objectOf(body.stream_options), include_usage: true } }
  const model = route.anyModel && route.model === undefined && { model: modelId }
  return { body: JSON.stringify({ ...body, ...options, ...model }), maxOutputTokens: maxOutputTokens(body) }
}

/** How many answers a body asks for. Gemini takes both spellings of a name. */
function countAnswers(body: JsonObject): number {
  const settings = [body.generationConfig, body.generation_config].map(value => objectOf(value) ?? {})
  const named = settings.flatMap(({ candidateCount, candidate_count }) => [candidateCount, candidate_count])
  return Math.max(1, ...[body.n, body.best_of, ...named].map(value => Number(value ?? 1) || 1))
}

function maxOutputTokens(body: JsonObject): number {
  const named = [
    body.max_tokens,
    body.max_completion_tokens,
    body.max_output_tokens,
    ...[body.generationConfig, body.generation_config].flatMap(value => {
      const { maxOutputTokens, max_output_tokens } = objectOf(value) ?? {}
      return [maxOutputTokens, max_output_tokens]
    }),
  ].filter(value => typeof value === 'number')
  return Math.min(Math.max(...named, 0) || USUAL_OUTPUT_TOKENS, 1_000_000)
}
