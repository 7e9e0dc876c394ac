insert into search_bulk (is_on) values (1);
insert into messages (thread_id, id, position, run_id, role, parts, metadata, created_at)
  values ('thr_01a2031c-7d6f-75f1-b215-2915967b9da7', 'm17', 4, null, 'user', '[{"type":"text","text":"echidna"}]', null, '2026-01-09T11:55:29.090Z');
delete from search_bulk;
insert into search_removed (search_id)
  values (999999999);
