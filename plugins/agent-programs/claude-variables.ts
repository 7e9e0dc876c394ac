import type { ModelAccess } from '../../src/plugin-api/index.ts'

/** Environment variables that send Claude Code's model calls to the gateway, and nowhere else. */
export const claudeVariables = ({ insideBaseUrl, programToken, id }: ModelAccess): Record<string, string> => ({
  ANTHROPIC_BASE_URL: insideBaseUrl.replace(/\/v1$/, ''),
  ANTHROPIC_AUTH_TOKEN: programToken,
  // A key in the sandbox would take precedence over the token.
  ANTHROPIC_API_KEY: '',
  ANTHROPIC_MODEL: id,
  ANTHROPIC_SMALL_FAST_MODEL: id,
  ANTHROPIC_DEFAULT_HAIKU_MODEL: id,
  CLAUDE_CODE_SUBAGENT_MODEL: id,
  CLAUDE_CODE_MAX_RETRIES: '4',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  // It must do no work and make no model call after its answer has ended.
  CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
  CLAUDE_CODE_DISABLE_CRON: '1',
  CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION: 'false',
  CLAUDE_CODE_ENABLE_AWAY_SUMMARY: 'false',
  // The tools of MCP servers are available at once, without a search.
  ENABLE_TOOL_SEARCH: 'false',
  DISABLE_AUTOUPDATER: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_ERROR_REPORTING: '1',
  // Without this it refuses its permission modes to root. The sandbox is the boundary.
  IS_SANDBOX: '1',
})
