-- What edits and new replies have cut off. The conversation that a thread shows is in `messages`. Any other shares the
-- beginning of its parent (null: of the one that is shown) up to a message (null: nothing), and has the rest as its own.
create table branches (
  id text primary key,
  thread_id text not null references threads on delete cascade,
  parent_id text references branches on delete cascade,
  after_message_id text,
  is_active integer not null check (is_active in (0, 1)),
  bytes integer not null default 0,
  created_at text not null,
  cut_at text
) strict;
create index branches_thread on branches (thread_id, id);
create unique index branches_active on branches (thread_id) where is_active = 1;
create index branches_parent on branches (parent_id) where parent_id is not null;

create table branch_messages (
  branch_id text not null references branches on delete cascade,
  id text not null,
  position integer not null,
  run_id text references runs on delete set null,
  role text not null check (role in ('user', 'assistant', 'system')),
  parts text not null,
  metadata text,
  created_at text not null,
  primary key (branch_id, id),
  unique (branch_id, position)
) strict;
create index branch_messages_run on branch_messages (run_id) where run_id is not null;
