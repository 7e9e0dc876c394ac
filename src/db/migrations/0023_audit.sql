-- What was done on this server, by whom: a chain, each row's hash being that of the hash before it and of the row.
create table audit (
  -- Also in `sqlite_sequence`, which says that there were more rows when somebody has removed the last ones.
  seq integer primary key autoincrement,
  -- JSON by RFC 8785: exactly what the hash is of.
  entry text not null,
  hash text not null,
  time text not null generated always as (entry ->> '$.time') virtual,
  team_id text generated always as (entry ->> '$.teamId') virtual,
  action text not null generated always as (entry ->> '$.action') virtual
) strict;
create index audit_team on audit (team_id, action);

-- Where the chain begins: the last row that was removed by age.
create table audit_anchor (
  id integer primary key check (id = 1),
  seq integer not null,
  hash text not null,
  time text not null
) strict;
insert into audit_anchor (id, seq, hash, time)
values (1, 0, '0000000000000000000000000000000000000000000000000000000000000000', '1970-01-01T00:00:00.000Z');
