import type { Database } from 'bun:sqlite'
import { ConfigError, type ModelConfig } from '../core/config.ts'
import { messageOf } from '../errors.ts'
import { createGateway, type Gateway, type GatewayOptions } from '../gateway/gateway.ts'
import { createPrices } from '../gateway/prices.ts'
import { defaultModel, findModel, readProviders } from '../gateway/providers.ts'
import { PROXY_URL } from '../guest/wire/proxy-variables.ts'

/** Makes the gateway from the configuration and the keys in `environment`. Throws a ConfigError for a model without a provider. */
export function createModelGateway(
  db: Database,
  config: ModelConfig,
  environment: Readonly<Record<string, string | undefined>>,
  log: (line: string) => void,
  {
    publicUrl,
    ...telemetry
  }: { publicUrl?: string | undefined } & Pick<GatewayOptions, 'observe' | 'traceparentOf'> = {},
): Gateway {
  const { budgets, prices, modelWindow } = config
  const { providers, model } = assertModel(config, environment)
  return createGateway({
    db,
    providers,
    budgets,
    log,
    ...telemetry,
    prices: createPrices(prices, log),
    origins: { relay: PROXY_URL, ...(publicUrl !== undefined && { public: publicUrl }) },
    ...(model !== undefined && { defaultModel: model }),
    ...(modelWindow !== undefined && { defaultWindow: modelWindow }),
  })
}

/** Keys are removed from everything that a provider answers. A shorter key would remove ordinary words or letters. */
const MIN_KEY_CHARACTERS = 8

const shortKey = (provider: string): string =>
  `the key of ${provider} has fewer than ${MIN_KEY_CHARACTERS} characters: give the whole key, or no key if the provider needs none`

/** The providers that can be called, and the default model. Throws a ConfigError for a model without a provider, and for a key that is too short. */
export function assertModel(config: ModelConfig, environment: Readonly<Record<string, string | undefined>>) {
  const providers = readProviders(config, environment)
  const short = [...providers.values()].filter(({ key }) => key !== undefined && key.length < MIN_KEY_CHARACTERS)
  if (short.length > 0) throw new ConfigError(short.map(({ name }) => shortKey(name)))
  const model = config.model ?? defaultModel(providers)
  try {
    if (model !== undefined) findModel(providers, model)
  } catch (error) {
    throw new ConfigError([`--${messageOf(error)}`])
  }
  return { providers, model }
}
