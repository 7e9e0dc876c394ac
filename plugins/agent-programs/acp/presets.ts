import type { ModelAccess } from '../../../src/plugin-api/index.ts'
import { claudeVariables } from '../claude-variables.ts'

/** A program with a name of its own in options.acp, and how its model calls reach the gateway. */
export interface Preset {
  command: string
  args: readonly string[]
  /** Pinned to the version that was tested. */
  install: string
  /** The model APIs that it can use. */
  wires: readonly ModelAccess['wire'][]
  /** It can use only models of this provider. */
  provider?: string
  authMethod?: string
  /** The mode in which it asks for no permission: the sandbox is the boundary. */
  mode?: string
  /** The mode in which it asks for as much as it can. */
  askingMode?: string
  /** Texts of its model have an id. A text without one is a warning of the program itself. */
  namesTexts?: true
  /** @param asks the program is to ask before each call that it can ask about */
  variables(access: ModelAccess, asks: boolean): Record<string, string>
}

const globally = (name: string) => `npm install -g --prefix /usr/local ${name}`

/** The gateway's URL without the version path, which some SDKs add themselves. */
const origin = ({ insideBaseUrl }: ModelAccess) => insideBaseUrl.replace(/\/v1$/, '')

/** opencode's AI SDK packages, by model API. */
const opencodePackages = {
  anthropic: '@ai-sdk/anthropic',
  'openai-responses': '@ai-sdk/openai',
  'openai-chat': '@ai-sdk/openai-compatible',
} as const

export const presets: ReadonlyMap<string, Preset> = new Map(
  Object.entries({
    opencode: {
      command: 'opencode',
      args: ['acp'],
      install: globally('opencode-ai@1.18.33'),
      wires: ['anthropic', 'openai-responses', 'openai-chat'],
      variables: ({ id, wire, insideBaseUrl, programToken, contextTokens = 128_000 }: ModelAccess, asks: boolean) => ({
        OPENCODE_CONFIG_CONTENT: JSON.stringify({
          model: `threadbox/${id}`,
          small_model: `threadbox/${id}`,
          share: 'disabled',
          autoupdate: false,
          permission: { '*': asks ? 'ask' : 'allow' },
          enabled_providers: ['threadbox'],
          provider: {
            threadbox: {
              npm: opencodePackages[wire],
              name: 'threadbox',
              options: { baseURL: insideBaseUrl, apiKey: programToken },
              models: { [id]: { name: id, tool_call: true, limit: { context: contextTokens, output: 16_384 } } },
            },
          },
        }),
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      }),
    },
    codex: {
      command: 'codex-acp',
      args: [],
      install: globally('@agentclientprotocol/codex-acp@2.6.0'),
      wires: ['openai-responses'],
      authMethod: 'api-key',
      mode: 'agent-full-access',
      askingMode: 'read-only',
      namesTexts: true,
      variables: ({ id, insideBaseUrl, programToken }: ModelAccess, asks: boolean) => ({
        CODEX_CONFIG: JSON.stringify({
          model: id,
          model_provider: 'threadbox',
          model_providers: {
            threadbox: {
              name: 'threadbox',
              base_url: insideBaseUrl,
              env_key: 'OPENAI_API_KEY',
              wire_api: 'responses',
              request_max_retries: 3,
              stream_max_retries: 3,
            },
          },
          analytics: { enabled: false },
          check_for_update_on_startup: false,
        }),
        MODEL_PROVIDER: 'threadbox',
        INITIAL_AGENT_MODE: asks ? 'read-only' : 'agent-full-access',
        NO_BROWSER: '1',
        OPENAI_API_KEY: programToken,
        CODEX_API_KEY: programToken,
      }),
    },
    gemini: {
      command: 'gemini',
      args: ['--acp'],
      install: globally('@google/gemini-cli@0.61.0'),
      wires: ['openai-chat'],
      provider: 'gemini',
      authMethod: 'gemini-api-key',
      mode: 'yolo',
      askingMode: 'default',
      variables: (access: ModelAccess) => ({
        GOOGLE_GEMINI_BASE_URL: origin(access),
        GEMINI_API_KEY: access.programToken,
        GEMINI_MODEL: access.id,
        GEMINI_CLI_TRUST_WORKSPACE: 'true',
        GEMINI_TELEMETRY_ENABLED: 'false',
      }),
    },
    'claude-agent-acp': {
      command: 'claude-agent-acp',
      args: [],
      install: globally('@agentclientprotocol/claude-agent-acp@0.100.0'),
      wires: ['anthropic'],
      mode: 'bypassPermissions',
      askingMode: 'default',
      variables: (access: ModelAccess) => claudeVariables(access),
    },
  } satisfies Record<string, Preset>),
)
