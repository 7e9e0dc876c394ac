-- When each chunk was made, in milliseconds since 1970. Null in logs of earlier versions.
alter table run_chunks add column at_ms integer;

-- The logs of runs that can no longer be resumed: pages of chunks, compressed, in the order in which they were put away.
create table log_pages (
  id integer primary key,
  run_id text not null references runs on delete cascade,
  last_seq integer not null,
  -- JSON by zstd: [[seq, at_ms, chunk], …]
  chunks blob not null,
  -- How many bytes there were up to the end of this page: the newest less this tells what all later pages have.
  ends_at_byte integer not null,
  kept_at text not null
) strict;
create unique index log_pages_run on log_pages (run_id, last_seq);
