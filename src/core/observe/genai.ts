/** The version of the OpenTelemetry semantic conventions that the names of metrics, spans and attributes follow. */
export const SEMANTIC_CONVENTIONS = '1.45.0'

/** The conventions' names for providers that have another name here. */
const names: Readonly<Record<string, string>> = {
  gemini: 'gcp.gemini',
  mistral: 'mistral_ai',
  xai: 'x_ai',
}

/** Returns the conventions' name of a configured provider. */
export const providerName = (provider: string): string => names[provider] ?? provider

/** Returns the conventions' operation of a model call: calls on the gateway's metered routes generate a reply. */
export const operationOf = ({ wire }: { wire: string }): string => (wire === 'gemini' ? 'generate_content' : 'chat')
