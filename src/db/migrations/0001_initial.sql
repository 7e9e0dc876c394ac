create table settings (
  name text primary key,
  value text not null
) strict;

create table teams (
  id text primary key,
  name text not null unique,
  created_at text not null
) strict;

create table api_keys (
  id text primary key,
  team_id text not null references teams on delete cascade,
  name text not null,
  hash text not null unique,
  hint text not null,
  created_at text not null,
  expires_at text,
  revoked_at text
) strict;
create index api_keys_team on api_keys (team_id);

create table agents (
  id text primary key,
  team_id text not null references teams on delete cascade,
  slug text not null,
  name text not null,
  engine text not null,
  model text,
  system_prompt text,
  sandbox text not null,
  created_at text not null,
  updated_at text not null,
  unique (team_id, slug)
) strict;

create table sandboxes (
  id text primary key,
  team_id text not null references teams on delete cascade,
  agent_slug text not null,
  agent_name text not null,
  environment_id text not null unique,
  backend text not null,
  status text not null,
  error text,
  envs text not null,
  cwd text not null,
  timeout_ms integer,
  external_user_id text,
  created_at text not null,
  updated_at text not null,
  last_used_at text not null
) strict;
create index sandboxes_team on sandboxes (team_id, id);
create index sandboxes_backend on sandboxes (backend, environment_id);
create index sandboxes_timeout on sandboxes (timeout_ms) where timeout_ms is not null;

create table threads (
  id text primary key,
  sandbox_id text not null references sandboxes on delete cascade,
  name text,
  status text not null check (status in ('active', 'streaming', 'completed', 'error', 'cancelled')),
  error text,
  external_user_id text,
  engine_session_id text,
  created_at text not null,
  updated_at text not null,
  completed_at text
) strict;
create index threads_sandbox on threads (sandbox_id, id);

create table runs (
  id text primary key,
  thread_id text not null references threads on delete cascade,
  sandbox_id text not null references sandboxes on delete cascade,
  status text not null check (status in ('active', 'completed', 'cancelled', 'failed', 'interrupted')),
  background integer not null check (background in (0, 1)),
  model text,
  input_tokens integer not null default 0,
  output_tokens integer not null default 0,
  cost_usd real not null default 0,
  duration_ms integer,
  error text,
  started_at text not null,
  ended_at text
) strict;
create index runs_thread on runs (thread_id, id);
create index runs_sandbox on runs (sandbox_id, status);
create index runs_active on runs (id) where status = 'active';

create table run_chunks (
  run_id text not null references runs on delete cascade,
  seq integer not null,
  chunk text not null,
  primary key (run_id, seq)
) strict, without rowid;

create table messages (
  thread_id text not null references threads on delete cascade,
  id text not null,
  position integer not null,
  run_id text references runs on delete set null,
  role text not null check (role in ('user', 'assistant', 'system')),
  parts text not null,
  metadata text,
  created_at text not null,
  primary key (thread_id, id),
  unique (thread_id, position)
) strict;
create index messages_run on messages (run_id) where run_id is not null;
