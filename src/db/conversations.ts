import type { Database } from 'bun:sqlite'
import type { Conversation, ConversationName } from '../model/conversation.ts'
import { now } from './id.ts'

/** Gives a thread a name, or notes that the name was used again. Throws when the thread is gone. */
export function saveConversation(
  db: Database,
  { teamId, userId = '', agentSlug, name }: ConversationName,
  { askedSandboxId, threadId }: Omit<Conversation, 'sandboxId'>,
): void {
  db.query(
    `insert into conversations (team_id, user_id, agent_slug, name, sandbox_id, thread_id, used_at)
     values ($teamId, $userId, $agentSlug, $name, $sandboxId, $threadId, $now)
     on conflict do update set thread_id = excluded.thread_id, used_at = excluded.used_at`,
  ).run({ teamId, userId, agentSlug, name, sandboxId: askedSandboxId ?? '', threadId, now: now() })
}

/** Lists the conversations of a name, the last used first. */
export const listConversations = (
  db: Database,
  { teamId, userId = '', agentSlug, name }: ConversationName,
): Conversation[] =>
  db
    .query<Conversation, Required<ConversationName>>(
      `select nullif(conversations.sandbox_id, '') as askedSandboxId, threads.sandbox_id as sandboxId, thread_id as threadId
       from conversations join threads on threads.id = thread_id
       where team_id = $teamId and user_id = $userId and agent_slug = $agentSlug and conversations.name = $name
       order by used_at desc, threads.id desc`,
    )
    .all({ teamId, userId, agentSlug, name })
