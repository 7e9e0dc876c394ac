-- Messages that wait for their thread's turn, in the order of their position: those that were meant to steer first.
-- `held`: the queue waits until someone says go. `messages` are what its run adds to the thread, the message of this id
-- among them; `request` is the rest of the chat.
create table queued_messages (
  thread_id text not null references threads on delete cascade,
  id text not null,
  position integer not null,
  mode text not null check (mode in ('queue', 'steer')),
  held integer not null default 0 check (held in (0, 1)),
  agent_slug text not null,
  key_id text,
  messages text not null,
  request text not null,
  created_at text not null,
  primary key (thread_id, id),
  unique (thread_id, position)
) strict;
