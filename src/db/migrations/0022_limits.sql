-- Limits of one key or team, as {"key.requests":"5/s"}; null: those of the server.
alter table api_keys add column limits text;
alter table teams add column limits text;
-- What the sandbox's files take, as far as its backend has told.
alter table sandboxes add column disk_bytes integer;
