-- What runs by itself at certain times.
create table schedules (
  id text primary key,
  team_id text not null references teams on delete cascade,
  -- Whose rights it has; null: the configured key's. Keys are never deleted.
  key_id text,
  name text not null,
  cron text not null,
  time_zone text not null,
  agent_slug text not null,
  prompt text,
  command text,
  sandbox text not null,
  sandbox_id text,
  timeout_ms integer not null,
  keep integer not null,
  paused_at text,
  paused_by text,
  next_at text,
  last_due_at text,
  created_at text not null,
  updated_at text not null,
  check ((prompt is null) <> (command is null))
) strict;
create index schedules_team on schedules (team_id, id);
create index schedules_due on schedules (next_at) where next_at is not null;

-- Each time that one was due. The row is there before anything runs.
create table schedule_runs (
  position integer primary key autoincrement,
  id text not null unique,
  schedule_id text not null references schedules on delete cascade,
  trigger text not null,
  due_at text not null,
  status text not null,
  -- Of a sandbox and a thread that may not be made yet, or be gone.
  sandbox_id text not null,
  thread_id text not null,
  run_id text,
  pid integer,
  exit_code integer,
  error text,
  started_at text,
  ended_at text
) strict;
create index schedule_runs_log on schedule_runs (schedule_id, position);
create index schedule_runs_open on schedule_runs (position) where ended_at is null;
-- However the clock is set, no moment is dealt with twice.
create unique index schedule_runs_once on schedule_runs (schedule_id, due_at) where trigger <> 'request';
