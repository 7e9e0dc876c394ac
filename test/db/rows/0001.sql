insert into settings (name, value)
  values ('engines', '["echo"]');
insert into teams (id, name, created_at)
  values ('team_01a2031c-70ae-70d7-a719-2fd397bec50f', 'default', '2026-01-01T11:55:21.010Z');
insert into teams (id, name, created_at)
  values ('team_01a2031c-70af-7058-8acf-e5719be63001', 'other', '2026-01-01T11:55:21.010Z');
insert into api_keys (id, team_id, name, hash, hint, created_at, expires_at, revoked_at)
  values ('key_01a2031c-70af-7057-b6ff-cbc359d0c98a', 'team_01a2031c-70ae-70d7-a719-2fd397bec50f', 'test', '6475cc52e652bdf0de69260a5e71e45798358064c5d0e3f2827df6c22c066299', '6789', '2026-01-01T11:55:21.010Z', null, null);
insert into api_keys (id, team_id, name, hash, hint, created_at, expires_at, revoked_at)
  values ('key_01a2031c-70b0-770e-9fed-008df4f064b6', 'team_01a2031c-70af-7058-8acf-e5719be63001', 'old', '283bb9deef02e6843abfb538efa1eca70801bd8a701c3f98191e123496339247', 'gone', '2026-01-01T11:55:21.010Z', '2026-12-31T00:00:00.000Z', '2026-01-02T11:55:22.020Z');
insert into agents (id, team_id, slug, name, engine, model, system_prompt, sandbox, created_at, updated_at)
  values ('agt_01a2031c-70ae-70d8-8a9f-a482cb27c1b0', 'team_01a2031c-70ae-70d7-a719-2fd397bec50f', 'echo', 'Echo', 'echo', null, 'Say it again.', '{"files":{},"envs":{"TOKEN":"secret-agent"},"setup":[],"limits":{}}', '2026-01-01T11:55:21.010Z', '2026-01-01T11:55:21.010Z');
insert into agents (id, team_id, slug, name, engine, model, system_prompt, sandbox, created_at, updated_at)
  values ('agt_01a2031c-70af-7059-9b89-06f6af56129e', 'team_01a2031c-70af-7058-8acf-e5719be63001', 'echo', 'Echo', 'echo', null, null, '{"files":{},"envs":{},"setup":[],"limits":{}}', '2026-01-01T11:55:21.010Z', '2026-01-01T11:55:21.010Z');
insert into sandboxes (id, team_id, agent_slug, agent_name, environment_id, backend, status, error, envs, cwd, timeout_ms, external_user_id, created_at, updated_at, last_used_at)
  values ('sbx_01a2031c-779f-7745-850f-5c541ead0101', 'team_01a2031c-70ae-70d7-a719-2fd397bec50f', 'echo', 'Echo', 'env_01a2031c-7141-7468-8834-01e0ee5e467e', 'nsjail', 'active', null, '{"TOKEN":"secret-sandbox"}', '/home/user', null, 'user-1', '2026-01-01T11:55:21.010Z', '2026-01-01T11:55:21.010Z', '2026-01-02T11:55:22.020Z');
insert into threads (id, sandbox_id, name, status, error, external_user_id, engine_session_id, created_at, updated_at, completed_at)
  values ('thr_01a2031c-7909-7313-8021-134a50c3495a', 'sbx_01a2031c-779f-7745-850f-5c541ead0101', 'one', 'completed', null, 'user-1', 'session-1', '2026-01-01T11:55:21.010Z', '2026-01-01T11:55:21.010Z', '2026-01-01T11:55:21.010Z');
insert into threads (id, sandbox_id, name, status, error, external_user_id, engine_session_id, created_at, updated_at, completed_at)
  values ('thr_01a2031c-7909-7313-8021-134a50c3496b', 'sbx_01a2031c-779f-7745-850f-5c541ead0101', null, 'streaming', null, null, null, '2026-01-01T11:55:21.010Z', '2026-01-01T11:55:21.010Z', null);
insert into runs (id, thread_id, sandbox_id, status, background, model, input_tokens, output_tokens, cost_usd, duration_ms, error, started_at, ended_at)
  values ('run_01a2031c-7914-7083-91a0-0a6af01da849', 'thr_01a2031c-7909-7313-8021-134a50c3495a', 'sbx_01a2031c-779f-7745-850f-5c541ead0101', 'completed', 0, 'echo', 1, 1, 0.25, 14, null, '2026-01-01T11:55:21.010Z', '2026-01-01T11:55:21.010Z');
insert into runs (id, thread_id, sandbox_id, status, background, model, started_at)
  values ('run_01a2031c-7944-72c0-a2e4-e1b2e86cac6e', 'thr_01a2031c-7909-7313-8021-134a50c3496b', 'sbx_01a2031c-779f-7745-850f-5c541ead0101', 'active', 1, 'echo', '2026-01-02T11:55:22.020Z');
insert into run_chunks (run_id, seq, chunk)
  values ('run_01a2031c-7914-7083-91a0-0a6af01da849', 1, '{"type":"start","messageId":"msg_01a2031c-7914-7084-a04c-3a0e7abc239a"}');
insert into run_chunks (run_id, seq, chunk)
  values ('run_01a2031c-7914-7083-91a0-0a6af01da849', 2, '{"type":"text-start","id":"text-1"}');
insert into run_chunks (run_id, seq, chunk)
  values ('run_01a2031c-7914-7083-91a0-0a6af01da849', 3, '{"type":"text-delta","id":"text-1","delta":"aardvark it is"}');
insert into run_chunks (run_id, seq, chunk)
  values ('run_01a2031c-7914-7083-91a0-0a6af01da849', 4, '{"type":"text-end","id":"text-1"}');
insert into run_chunks (run_id, seq, chunk)
  values ('run_01a2031c-7914-7083-91a0-0a6af01da849', 5, '{"type":"message-metadata","messageMetadata":{"sessionId":"thr_01a2031c-7909-7313-8021-134a50c3495a","totalCostUsd":0,"inputTokens":1,"outputTokens":1,"durationMs":14,"sandboxId":"sbx_01a2031c-779f-7745-850f-5c541ead0101","threadId":"thr_01a2031c-7909-7313-8021-134a50c3495a","runId":"run_01a2031c-7914-7083-91a0-0a6af01da849","messageId":"msg_01a2031c-7914-7084-a04c-3a0e7abc239a","totalTokens":2,"model":"echo"}}');
insert into run_chunks (run_id, seq, chunk)
  values ('run_01a2031c-7914-7083-91a0-0a6af01da849', 6, '{"type":"finish","finishReason":"stop"}');
insert into run_chunks (run_id, seq, chunk)
  values ('run_01a2031c-7944-72c0-a2e4-e1b2e86cac6e', 1, '{"type":"start","messageId":"msg_01a2031c-7944-72c1-82e3-618b9c1527cb"}');
insert into run_chunks (run_id, seq, chunk)
  values ('run_01a2031c-7944-72c0-a2e4-e1b2e86cac6e', 2, '{"type":"text-start","id":"text-1"}');
insert into run_chunks (run_id, seq, chunk)
  values ('run_01a2031c-7944-72c0-a2e4-e1b2e86cac6e', 3, '{"type":"text-delta","id":"text-1","delta":"half a"}');
insert into messages (thread_id, id, position, run_id, role, parts, metadata, created_at)
  values ('thr_01a2031c-7909-7313-8021-134a50c3495a', 'm1', 1, null, 'user', '[{"type":"text","text":"aardvark"}]', null, '2026-01-01T11:55:21.010Z');
insert into messages (thread_id, id, position, run_id, role, parts, metadata, created_at)
  values ('thr_01a2031c-7909-7313-8021-134a50c3495a', 'msg_01a2031c-7914-7084-a04c-3a0e7abc239a', 2, 'run_01a2031c-7914-7083-91a0-0a6af01da849', 'assistant', '[{"type":"text","text":"aardvark it is","state":"done"}]', '{"sessionId":"thr_01a2031c-7909-7313-8021-134a50c3495a","totalCostUsd":0,"inputTokens":1,"outputTokens":1,"durationMs":14,"sandboxId":"sbx_01a2031c-779f-7745-850f-5c541ead0101","threadId":"thr_01a2031c-7909-7313-8021-134a50c3495a","runId":"run_01a2031c-7914-7083-91a0-0a6af01da849","messageId":"msg_01a2031c-7914-7084-a04c-3a0e7abc239a","totalTokens":2,"model":"echo"}', '2026-01-01T11:55:21.010Z');
insert into messages (thread_id, id, position, run_id, role, parts, metadata, created_at)
  values ('thr_01a2031c-7909-7313-8021-134a50c3496b', 'm1', 1, null, 'user', '[{"type":"text","text":"interrupted"}]', null, '2026-01-02T11:55:22.020Z');
