insert into runs (id, thread_id, sandbox_id, status, background, message_id, profile, model, input_tokens, output_tokens, cost_usd, duration_ms, error, started_at, ended_at)
  values ('run_01a2031c-7d71-7741-8414-1b6052aec4c5', 'thr_01a2031c-7d6f-75f1-b215-2915967b9da7', 'sbx_01a2031c-779f-7745-850f-5c541ead0101', 'completed', 0, 'msg_15', 'contract', 'echo', 1, 1, 0, 3, null, '2026-01-08T11:55:28.080Z', '2026-01-08T11:55:28.080Z');
insert into log_pages (run_id, last_seq, chunks, ends_at_byte, kept_at)
  values ('run_01a2031c-7d71-7741-8414-1b6052aec4c5', 2, {{packed '[[1, 1795348527383, "{\"type\":\"start\",\"messageId\":\"msg_15\"}"], [2, 1795348527391, "{\"type\":\"finish\",\"finishReason\":\"stop\"}"]]'}}, 100, '2026-11-22T00:00:00.000Z');
insert into runs (id, thread_id, sandbox_id, status, background, message_id, profile, model, input_tokens, output_tokens, cost_usd, duration_ms, error, started_at, ended_at)
  values ('run_01a2031c-7d72-7741-8414-1b6052aec4c6', 'thr_01a2031c-7d6f-75f1-b215-2915967b9da7', 'sbx_01a2031c-779f-7745-850f-5c541ead0101', 'completed', 0, 'msg_15b', 'contract', 'echo', 1, 1, 0, 3, null, '2026-01-09T11:55:29.090Z', '2126-01-01T00:00:00.000Z');
insert into run_chunks (run_id, seq, chunk, at_ms)
  values ('run_01a2031c-7d72-7741-8414-1b6052aec4c6', 1, '{"type":"start","messageId":"msg_15b"}', 1795348527383);
insert into run_chunks (run_id, seq, chunk, at_ms)
  values ('run_01a2031c-7d72-7741-8414-1b6052aec4c6', 2, '{"type":"text-start","id":"text-1"}', 1795348527383);
insert into run_chunks (run_id, seq, chunk, at_ms)
  values ('run_01a2031c-7d72-7741-8414-1b6052aec4c6', 3, '{"type":"text-delta","id":"text-1","delta":"dingo it is"}', 1795348527383);
insert into run_chunks (run_id, seq, chunk, at_ms)
  values ('run_01a2031c-7d72-7741-8414-1b6052aec4c6', 4, '{"type":"text-end","id":"text-1"}', 1795348527383);
insert into run_chunks (run_id, seq, chunk, at_ms)
  values ('run_01a2031c-7d72-7741-8414-1b6052aec4c6', 5, '{"type":"message-metadata","messageMetadata":{"sessionId":"thr_01a2031c-7d6f-75f1-b215-2915967b9da7","totalCostUsd":0,"inputTokens":1,"outputTokens":1,"durationMs":14,"sandboxId":"sbx_01a2031c-779f-7745-850f-5c541ead0101","threadId":"thr_01a2031c-7d6f-75f1-b215-2915967b9da7","runId":"run_01a2031c-7d72-7741-8414-1b6052aec4c6","messageId":"msg_15b","totalTokens":2,"model":"echo"}}', 1795348527383);
insert into run_chunks (run_id, seq, chunk, at_ms)
  values ('run_01a2031c-7d72-7741-8414-1b6052aec4c6', 6, '{"type":"finish","finishReason":"stop"}', 1795348527383);
insert into messages (thread_id, id, position, run_id, role, parts, metadata, created_at)
  values ('thr_01a2031c-7d6f-75f1-b215-2915967b9da7', 'm15', 3, null, 'user', '[{"type":"text","text":"dingo"}]', null, '2026-01-09T11:55:29.090Z');
