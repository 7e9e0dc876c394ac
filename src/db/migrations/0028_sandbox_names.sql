-- A name that a client chose, by which another process finds the sandbox. A team has it once.
alter table sandboxes add column name text;
create unique index sandboxes_name on sandboxes (team_id, name) where name is not null;
