/** Where OpenTelemetry's data goes, read from the variables that its specification names. */
export interface TelemetrySettings {
  /** Absent when no traces are sent. */
  tracesUrl?: string
  /** Absent when no metrics are sent. */
  metricsUrl?: string
  /** The headers of each request; they may contain a secret. */
  headers: Readonly<Record<string, string>>
  /** The attributes that describe this server. */
  resource: Readonly<Record<string, string>>
  metricsEveryMs: number
  /** The share of traces beginning here that are kept. */
  sampled: number
}

type Environment = Readonly<Record<string, string | undefined>>

const METRICS_EVERY_MS = 60_000

/** Undefined when nothing is to be sent. Throws an error that names a variable which cannot be used, but never its value. */
export function readTelemetry(environment: Environment): TelemetrySettings | undefined {
  if (environment.OTEL_SDK_DISABLED?.toLowerCase() === 'true') return undefined
  const tracesUrl = urlOf(environment, 'traces')
  const metricsUrl = urlOf(environment, 'metrics')
  if (tracesUrl === undefined && metricsUrl === undefined) return undefined
  const attributes = pairsOf(environment, 'OTEL_RESOURCE_ATTRIBUTES')
  return {
    ...(tracesUrl !== undefined && { tracesUrl }),
    ...(metricsUrl !== undefined && { metricsUrl }),
    headers: pairsOf(environment, 'OTEL_EXPORTER_OTLP_HEADERS'),
    resource: {
      ...attributes,
      'service.name': environment.OTEL_SERVICE_NAME || attributes['service.name'] || 'threadbox',
    },
    metricsEveryMs: numberOf(environment, 'OTEL_METRIC_EXPORT_INTERVAL', METRICS_EVERY_MS, 100),
    sampled: sampledOf(environment),
  }
}

/** The endpoint of one signal is used as it is; to the common endpoint the signal's path is added. */
function urlOf(environment: Environment, signal: 'traces' | 'metrics'): string | undefined {
  if (environment[`OTEL_${signal.toUpperCase()}_EXPORTER`] === 'none') return undefined
  const own = `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`
  const name = environment[own] ? own : 'OTEL_EXPORTER_OTLP_ENDPOINT'
  const text = environment[name]
  if (!text) return undefined
  const url = URL.parse(text)
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') throw new Error(`${name}: must be http:// or https://`)
  return name === own ? url.href : `${url.href.replace(/\/$/, '')}/v1/${signal}`
}

/** Reads pairs such as `name=value,name=value` with percent-encoded values. */
function pairsOf(environment: Environment, name: string): Record<string, string> {
  const pairs = (environment[name] ?? '').split(',').filter(pair => pair.trim() !== '')
  return Object.fromEntries(
    pairs.map(pair => {
      const at = pair.indexOf('=')
      try {
        if (at < 1) throw new Error('no name')
        return [pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim())]
      } catch {
        throw new Error(`${name}: must be name=value pairs, separated by commas`)
      }
    }),
  )
}

function sampledOf(environment: Environment): number {
  const sampler = environment.OTEL_TRACES_SAMPLER ?? 'parentbased_always_on'
  if (sampler.endsWith('always_off')) return 0
  return sampler.endsWith('traceidratio') ? numberOf(environment, 'OTEL_TRACES_SAMPLER_ARG', 1, 0, 1) : 1
}

function numberOf(environment: Environment, name: string, usual: number, least: number, most = 2 ** 31 - 1): number {
  const given = Number(environment[name] || usual)
  if (!(given >= least && given <= most)) throw new Error(`${name}: must be a number from ${least} to ${most}`)
  return given
}
