-- What E2B's clients asked for with a sandbox. A sandbox without a row was made through this server's own API.
create table e2b_sandboxes (
  sandbox_id text primary key references sandboxes (id) on delete cascade,
  template text not null,
  metadata text not null,
  -- Its time to live, again after each resume that names no other.
  timeout_ms integer not null,
  ends_at text not null,
  on_end text not null check (on_end in ('kill', 'pause')),
  -- Whether traffic resumes it.
  resumes integer not null,
  -- Whether its ports need a token.
  is_private integer not null,
  masked_host text,
  -- As the client gave them: {"allowOut":[],"denyOut":[]}.
  network text,
  paused_at text
) strict;
create index e2b_sandboxes_ends on e2b_sandboxes (ends_at) where paused_at is null;

-- The keys whose tokens open a sandbox: '' is the configured key.
create table e2b_tokens (
  sandbox_id text not null references e2b_sandboxes (sandbox_id) on delete cascade,
  key_id text not null,
  primary key (sandbox_id, key_id)
) strict, without rowid;
