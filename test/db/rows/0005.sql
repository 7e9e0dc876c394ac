insert into unfinished_environments (environment_id, backend, began_at)
  values ('env_01a2031c-7141-7468-8834-01e0ee5e4681', 'docker', '2026-01-05T11:55:25.050Z');
insert into stray_environments (environment_id, backend, found_at)
  values ('env_01a2031c-7141-7468-8834-01e0ee5e4682', 'docker', '2026-11-22T00:00:00.000Z');
