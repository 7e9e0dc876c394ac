-- Versions of an agent, also those that no deploy made: they have no bundle.
create table versions (
  id text primary key,
  agent_id text not null references agents on delete cascade,
  version integer not null,
  made_by text not null check (made_by in ('deploy', 'edit', 'apply')),
  definition text not null,
  model text,
  tools text not null,
  bundle text,
  template text,
  created_at text not null,
  unique (agent_id, version)
) strict;
insert into versions (id, agent_id, version, made_by, definition, model, tools, bundle, template, created_at)
  select id, agent_id, version, 'deploy', definition, model, tools, bundle, template, created_at from deployments;
drop table deployments;
alter table versions rename to deployments;

-- Limits that the operator's file gave an agent that has versions: these hold above the server's own.
alter table agents add column operator_limits text;
