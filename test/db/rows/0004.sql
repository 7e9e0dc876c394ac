insert into conversations (team_id, user_id, agent_slug, name, sandbox_id, thread_id, used_at)
  values ('team_01a2031c-70ae-70d7-a719-2fd397bec50f', 'user-1', 'echo', 'chat-1', '', 'thr_01a2031c-7909-7313-8021-134a50c3495a', '2026-01-04T11:55:24.040Z');
