export { ThreadboxError } from '../error.ts'
export { lastMessageIsAnswered } from './answered.ts'
export type { ThreadboxChatSettings, ThreadboxIds, ThreadboxTool } from './settings.ts'
export {
  type ThreadboxApproval,
  type ThreadboxCancelled,
  type ThreadboxChat,
  type ThreadboxToolResult,
  threadbox,
} from './transport.ts'
