insert into threads (id, sandbox_id, name, status, error, external_user_id, engine_session_id, created_at, updated_at, completed_at)
  values ('thr_01a2031c-7d6f-75f1-b215-2915967b9da7', 'sbx_01a2031c-779f-7745-850f-5c541ead0101', 'two', 'completed', null, 'user-2', null, '2026-01-07T11:55:27.070Z', '2026-01-07T11:55:27.070Z', '2026-01-07T11:55:27.070Z');
insert into runs (id, thread_id, sandbox_id, status, background, message_id, profile, model, input_tokens, output_tokens, cost_usd, duration_ms, error, started_at, ended_at)
  values ('run_01a2031c-7d70-7741-8414-1b6052aec4c4', 'thr_01a2031c-7d6f-75f1-b215-2915967b9da7', 'sbx_01a2031c-779f-7745-850f-5c541ead0101', 'completed', 0, 'msg_01a2031c-7d70-7742-8689-0584733a6545', 'ai-7', 'echo', 3, 4, 0, 3, null, '2026-01-07T11:55:27.070Z', '2026-01-07T11:55:27.070Z');
insert into run_chunks (run_id, seq, chunk)
  values ('run_01a2031c-7d70-7741-8414-1b6052aec4c4', 1, '{"type":"start","messageId":"msg_01a2031c-7d70-7742-8689-0584733a6545"}');
insert into run_chunks (run_id, seq, chunk)
  values ('run_01a2031c-7d70-7741-8414-1b6052aec4c4', 2, '{"type":"text-start","id":"text-1"}');
insert into run_chunks (run_id, seq, chunk)
  values ('run_01a2031c-7d70-7741-8414-1b6052aec4c4', 3, '{"type":"text-delta","id":"text-1","delta":"capybara it is"}');
insert into run_chunks (run_id, seq, chunk)
  values ('run_01a2031c-7d70-7741-8414-1b6052aec4c4', 4, '{"type":"text-end","id":"text-1"}');
insert into run_chunks (run_id, seq, chunk)
  values ('run_01a2031c-7d70-7741-8414-1b6052aec4c4', 5, '{"type":"message-metadata","messageMetadata":{"sessionId":"thr_01a2031c-7d6f-75f1-b215-2915967b9da7","totalCostUsd":0,"inputTokens":1,"outputTokens":1,"durationMs":14,"sandboxId":"sbx_01a2031c-779f-7745-850f-5c541ead0101","threadId":"thr_01a2031c-7d6f-75f1-b215-2915967b9da7","runId":"run_01a2031c-7d70-7741-8414-1b6052aec4c4","messageId":"msg_01a2031c-7d70-7742-8689-0584733a6545","totalTokens":2,"model":"echo"}}');
insert into run_chunks (run_id, seq, chunk)
  values ('run_01a2031c-7d70-7741-8414-1b6052aec4c4', 6, '{"type":"finish","finishReason":"stop"}');
insert into messages (thread_id, id, position, run_id, role, parts, metadata, created_at)
  values ('thr_01a2031c-7d6f-75f1-b215-2915967b9da7', 'm1', 1, null, 'user', '[{"type":"text","text":"capybara"}]', null, '2026-01-01T11:55:21.010Z');
insert into messages (thread_id, id, position, run_id, role, parts, metadata, created_at)
  values ('thr_01a2031c-7d6f-75f1-b215-2915967b9da7', 'msg_01a2031c-7d70-7742-8689-0584733a6545', 2, 'run_01a2031c-7d70-7741-8414-1b6052aec4c4', 'assistant', '[{"type":"text","text":"capybara it is","state":"done"}]', '{"sessionId":"thr_01a2031c-7d6f-75f1-b215-2915967b9da7","totalCostUsd":0,"inputTokens":1,"outputTokens":1,"durationMs":14,"sandboxId":"sbx_01a2031c-779f-7745-850f-5c541ead0101","threadId":"thr_01a2031c-7d6f-75f1-b215-2915967b9da7","runId":"run_01a2031c-7d70-7741-8414-1b6052aec4c4","messageId":"msg_01a2031c-7d70-7742-8689-0584733a6545","totalTokens":2,"model":"echo"}', '2026-01-01T11:55:21.010Z');
