-- What programs in sandboxes may use without having it.
create table secrets (
  id text primary key,
  team_id text not null references teams on delete cascade,
  name text not null,
  -- Encrypted.
  value text not null,
  created_at text not null,
  updated_at text not null,
  unique (team_id, name)
) strict;

-- Which secrets new sandboxes may use at which hosts, as JSON: names alone.
alter table agents add column secrets text not null default '[]';
