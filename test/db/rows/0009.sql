insert into branches (id, thread_id, parent_id, after_message_id, is_active, bytes, created_at, cut_at)
  values ('brn_01a2031c-7993-7286-9d73-4976e5f89bca', 'thr_01a2031c-7909-7313-8021-134a50c3495a', null, 'm1', 0, 75, '2026-01-09T11:55:29.090Z', '2026-01-09T11:55:29.090Z');
insert into branches (id, thread_id, parent_id, after_message_id, is_active, bytes, created_at, cut_at)
  values ('brn_01a2031c-7994-75be-8b84-56ab7d8d8c39', 'thr_01a2031c-7909-7313-8021-134a50c3495a', null, null, 1, 0, '2026-01-09T11:55:29.090Z', null);
insert into branch_messages (branch_id, id, position, run_id, role, parts, metadata, created_at)
  values ('brn_01a2031c-7993-7286-9d73-4976e5f89bca', 'b2', 2, 'run_01a2031c-7914-7083-91a0-0a6af01da849', 'assistant', '[{"type":"text","text":"another","state":"done"}]', null, '2026-01-09T11:55:29.090Z');
