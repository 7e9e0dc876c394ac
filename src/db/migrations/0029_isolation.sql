-- How a sandbox is isolated, as it was made. Null: as its backend says.
alter table sandboxes add column isolation text;
update sandboxes
  set isolation = case backend when 'nsjail' then 'namespaces' when 'docker' then 'container' when 'e2b' then 'microvm' end;
drop index sandboxes_backend;
create index sandboxes_backend on sandboxes (backend, isolation, environment_id);
