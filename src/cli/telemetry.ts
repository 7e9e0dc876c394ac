import { ConfigError } from '../core/config.ts'
import type { Runtime } from '../core/runtime.ts'
import type { Telemetry } from '../core/telemetry/telemetry.ts'
import { messageOf } from '../errors.ts'

const endpoints = [
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
  'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
]

type Environment = Readonly<Record<string, string | undefined>>

/** Sends traces and metrics as the environment says. When they go nowhere, its code is not even loaded. */
export interface ServerTelemetry extends Telemetry {
  start(runtime: Runtime): void
}

/** Throws a ConfigError when a variable cannot be used. */
export async function openTelemetry(environment: Environment): Promise<ServerTelemetry> {
  const begin = await findTelemetry(environment)
  let telemetry: Telemetry | undefined
  return {
    start(runtime) {
      telemetry = begin?.(runtime)
    },
    traceparentOf: (runId, callId) => telemetry?.traceparentOf(runId, callId),
    close: async () => await telemetry?.close(),
  }
}

async function findTelemetry(environment: Environment): Promise<((runtime: Runtime) => Telemetry) | undefined> {
  if (!endpoints.some(name => environment[name])) return undefined
  const [{ readTelemetry }, { startTelemetry }] = await Promise.all([
    import('../core/telemetry/settings.ts'),
    import('../core/telemetry/telemetry.ts'),
  ])
  try {
    const settings = readTelemetry(environment)
    return settings && (runtime => startTelemetry(runtime, settings))
  } catch (error) {
    throw new ConfigError([messageOf(error)])
  }
}
