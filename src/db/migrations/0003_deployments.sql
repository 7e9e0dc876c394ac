alter table agents add column deployment_id text;
alter table agents add column env text not null default '{}';

-- Versions of an agent. None is ever changed.
create table deployments (
  id text primary key,
  agent_id text not null references agents on delete cascade,
  version integer not null,
  definition text not null,
  model text,
  tools text not null,
  bundle text not null,
  template text,
  created_at text not null,
  unique (agent_id, version)
) strict;

-- What a sandbox was made from, as names of files: it keeps its tools when the agent is gone.
alter table sandboxes add column deployment_id text;
alter table sandboxes add column bundle text;

create table agent_logs (
  id integer primary key,
  agent_id text not null references agents on delete cascade,
  at text not null,
  source text not null check (source in ('deploy', 'setup', 'tools', 'engine')),
  level text not null check (level in ('info', 'warn', 'error')),
  sandbox_id text,
  text text not null
) strict;
create index agent_logs_agent on agent_logs (agent_id, id);
create index sandboxes_agent on sandboxes (team_id, agent_slug, id);
