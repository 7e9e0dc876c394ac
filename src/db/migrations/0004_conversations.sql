-- Conversations by the names that clients have for them. `user_id` is '' without an end user, `sandbox_id` is the one that
-- was asked for, '' where the conversation has one of its own.
create table conversations (
  team_id text not null references teams on delete cascade,
  user_id text not null,
  agent_slug text not null,
  name text not null,
  sandbox_id text not null,
  thread_id text not null references threads on delete cascade,
  used_at text not null,
  primary key (team_id, user_id, agent_slug, name, sandbox_id)
) strict, without rowid;
create index conversations_thread on conversations (thread_id);
