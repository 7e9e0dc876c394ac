-- Disks of sandboxes as of one moment, with what a new sandbox of them needs beside. They outlive their sandboxes.
create table snapshots (
  id text primary key,
  team_id text not null references teams on delete cascade,
  name text,
  -- making, forking: of a request that goes on. removed: its files go as soon as no sandbox shares them.
  state text not null check (state in ('making', 'ready', 'forking', 'removed')),
  backend text not null,
  sandbox_id text not null,
  agent_slug text not null,
  agent_name text not null,
  envs text not null,
  cwd text not null,
  network text not null,
  limits text not null,
  timeout_ms integer,
  deployment_id text,
  bundle text,
  external_user_id text,
  bytes integer not null,
  frozen_ms integer not null,
  method text not null,
  fork_method text not null,
  created_at text not null
) strict;
create index snapshots_team on snapshots (team_id, id);
create unique index snapshots_name on snapshots (team_id, name) where state in ('making', 'ready');
create index snapshots_unsettled on snapshots (state) where state <> 'ready';
