alter table agents add column options text not null default '{}';

alter table sandboxes add column network text not null default '{}';

-- Outlives what it names: a bill does not change when a sandbox is deleted.
create table model_calls (
  id text primary key,
  team_id text not null references teams on delete cascade,
  key_id text,
  agent_slug text not null,
  sandbox_id text not null,
  thread_id text not null,
  run_id text not null,
  provider text not null,
  model text not null,
  status text not null,
  input_tokens integer not null,
  output_tokens integer not null,
  cache_read_tokens integer not null,
  cache_write_tokens integer not null,
  cost_usd real not null,
  started_at text not null,
  duration_ms integer not null
) strict;
create index model_calls_team on model_calls (team_id, started_at);
create index model_calls_run on model_calls (run_id);
create index model_calls_thread on model_calls (thread_id);
create index model_calls_sandbox on model_calls (sandbox_id);
create index model_calls_agent on model_calls (team_id, agent_slug, cost_usd);
create index model_calls_day on model_calls (started_at, cost_usd);
