-- Threads and runs may wait for a person, which their checks did not allow: SQLite changes a check only by a new table.
create table new_threads (
  id text primary key,
  sandbox_id text not null references sandboxes on delete cascade,
  name text,
  status text not null check (status in ('active', 'streaming', 'waiting', 'completed', 'error', 'cancelled')),
  error text,
  external_user_id text,
  engine_session_id text,
  created_at text not null,
  updated_at text not null,
  completed_at text
) strict;
insert into new_threads (id, sandbox_id, name, status, error, external_user_id, engine_session_id, created_at, updated_at, completed_at)
  select id, sandbox_id, name, status, error, external_user_id, engine_session_id, created_at, updated_at, completed_at from threads;
drop table threads;
alter table new_threads rename to threads;
create index threads_sandbox on threads (sandbox_id, id);
create index threads_waiting on threads (id) where status = 'waiting';

create table new_runs (
  id text primary key,
  thread_id text not null references threads on delete cascade,
  sandbox_id text not null references sandboxes on delete cascade,
  status text not null check (status in ('active', 'waiting', 'completed', 'cancelled', 'failed', 'interrupted')),
  background integer not null check (background in (0, 1)),
  -- The reply that the run makes, or goes on with. Runs of earlier versions have none.
  message_id text,
  profile text not null default 'contract' check (profile in ('contract', 'full', 'ai-7')),
  model text,
  input_tokens integer not null default 0,
  output_tokens integer not null default 0,
  cost_usd real not null default 0,
  duration_ms integer,
  error text,
  started_at text not null,
  ended_at text
) strict;
insert into new_runs (id, thread_id, sandbox_id, status, background, model, input_tokens, output_tokens, cost_usd, duration_ms, error, started_at, ended_at)
  select id, thread_id, sandbox_id, status, background, model, input_tokens, output_tokens, cost_usd, duration_ms, error, started_at, ended_at from runs;
drop table runs;
alter table new_runs rename to runs;
create index runs_thread on runs (thread_id, id);
create index runs_sandbox on runs (sandbox_id, status);
create index runs_active on runs (id) where status = 'active';
create index runs_usage on runs (thread_id, ended_at, input_tokens, output_tokens, cost_usd, duration_ms);

-- What an agent wants to do and a person decides. `used_at`: the call was begun, or the agent was told of the refusal.
create table approvals (
  id text primary key,
  team_id text not null references teams on delete cascade,
  agent_slug text not null,
  sandbox_id text not null references sandboxes on delete cascade,
  thread_id text not null references threads on delete cascade,
  run_id text not null references runs on delete cascade,
  message_id text not null,
  tool_call_id text not null,
  kind text not null check (kind in ('tool', 'budget')),
  tool text not null,
  input text not null,
  reason text,
  status text not null check (status in ('pending', 'approved', 'denied', 'expired', 'cancelled')),
  answer_reason text,
  answered_by text,
  remember text check (remember in ('thread', 'agent')),
  created_at text not null,
  expires_at text not null,
  answered_at text,
  used_at text
) strict;
create index approvals_team on approvals (team_id, id);
create index approvals_thread on approvals (thread_id, status);
create index approvals_sandbox on approvals (sandbox_id, id);
create index approvals_run on approvals (run_id);
create index approvals_pending on approvals (expires_at) where status = 'pending';

-- Calls of tools that the client has: it gives their outputs.
create table client_calls (
  thread_id text not null references threads on delete cascade,
  message_id text not null,
  tool_call_id text not null,
  run_id text not null references runs on delete cascade,
  tool text not null,
  input text not null,
  status text not null check (status in ('pending', 'answered', 'expired', 'cancelled')),
  created_at text not null,
  expires_at text not null,
  answered_at text,
  primary key (thread_id, message_id, tool_call_id)
) strict;
create index client_calls_run on client_calls (run_id);
create index client_calls_pending on client_calls (expires_at) where status = 'pending';
