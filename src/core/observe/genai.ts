/** The version of the OpenTelemetry semantic conventions that names of metrics, spans and attributes are from. */
export const SEMANTIC_CONVENTIONS = '1.45.0'

/** Names that the conventions have for providers that are called otherwise here. */
const names: Readonly<Record<string, string>> = {
  gemini: 'gcp.gemini',
  mistral: 'mistral_ai',
  xai: 'x_ai',
}

/** A provider of the configuration as the conventions call it. */
export const providerName = (provider: string): string => names[provider] ?? provider

/** What a call of a model is: those that pass the gateway's metered routes generate a reply. */
export const operationOf = ({ wire }: { wire: string }): string => (wire === 'gemini' ? 'generate_content' : 'chat')
