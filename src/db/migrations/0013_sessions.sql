-- A browser that is signed in to the console, and links that sign in once. Only hashes of their secrets are here.
create table sessions (
  id text primary key,
  team_id text not null references teams on delete cascade,
  -- The key that signed in. Null: the configured key, or a link that the operator made.
  key_id text references api_keys on delete cascade,
  -- Of the configured key that signed in: the session ends when the server has another one.
  configured_key_hash text,
  hash text not null unique,
  browser text not null,
  created_at text not null,
  expires_at text not null
) strict;
create index sessions_team on sessions (team_id, id);
create table sign_in_links (
  hash text primary key,
  team_id text not null references teams on delete cascade,
  key_id text references api_keys on delete cascade,
  expires_at text not null
) strict;
