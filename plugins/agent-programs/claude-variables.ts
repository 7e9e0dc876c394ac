import type { ModelAccess } from '../../src/plugin-api/index.ts'

/** What leads Claude Code's model calls to the gateway, and keeps it from every other. */
export const claudeVariables = ({ insideBaseUrl, programToken, id }: ModelAccess): Record<string, string> => ({
  ANTHROPIC_BASE_URL: insideBaseUrl.replace(/\/v1$/, ''),
  ANTHROPIC_AUTH_TOKEN: programToken,
  // It would win over the token.
  ANTHROPIC_API_KEY: '',
  ANTHROPIC_MODEL: id,
  ANTHROPIC_SMALL_FAST_MODEL: id,
  ANTHROPIC_DEFAULT_HAIKU_MODEL: id,
  CLAUDE_CODE_SUBAGENT_MODEL: id,
  CLAUDE_CODE_MAX_RETRIES: '4',
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  // Nothing of it may go on, or ask a model, when its answer has ended.
  CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
  CLAUDE_CODE_DISABLE_CRON: '1',
  CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION: 'false',
  CLAUDE_CODE_ENABLE_AWAY_SUMMARY: 'false',
  // Tools of MCP servers are there from the beginning, not when they are searched for.
  ENABLE_TOOL_SEARCH: 'false',
  DISABLE_AUTOUPDATER: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_ERROR_REPORTING: '1',
  // Root inside may do what the agent's mode says: the sandbox is the border.
  IS_SANDBOX: '1',
})
