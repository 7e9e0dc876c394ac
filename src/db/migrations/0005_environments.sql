-- Environments that are being made or removed: one of them without a sandbox is nobody's, and may be erased.
create table unfinished_environments (
  environment_id text primary key,
  backend text not null,
  began_at text not null
) strict;

-- Environments that no sandbox of this database has, and that nobody here began or removed. They are kept for a while.
create table stray_environments (
  environment_id text primary key,
  backend text not null,
  found_at text not null
) strict;
