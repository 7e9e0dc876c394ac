-- Replies that wait, with what the run that goes on with one needs. A row is there until nothing of the reply is open any more.
create table waiting_replies (
  thread_id text not null references threads on delete cascade,
  message_id text not null,
  -- JSON: what the chat has asked for that the reply is of.
  request text not null,
  -- The runs that were started to go on with it, and that have not begun what was approved.
  tries integer not null default 0,
  primary key (thread_id, message_id)
) strict;

-- JSON, until the agent was given it: the output, or an error.
alter table client_calls add column answer text;
-- The agent was given the answer.
alter table client_calls add column used_at text;
