-- Calls that a person has approved for good: in one thread, or for every sandbox of an agent.
create table remembered_rules (
  id text primary key,
  team_id text not null references teams on delete cascade,
  agent_slug text not null,
  -- Null: for the agent.
  thread_id text references threads on delete cascade,
  rule text not null,
  created_at text not null
) strict;
create unique index remembered_rules_place on remembered_rules (team_id, agent_slug, coalesce(thread_id, ''), rule);
create index remembered_rules_thread on remembered_rules (thread_id) where thread_id is not null;
