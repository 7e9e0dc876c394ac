insert into e2b_sandboxes (sandbox_id, template, metadata, timeout_ms, ends_at, on_end, resumes, is_private, masked_host, network, paused_at)
  values ('sbx_01a2031c-779f-7745-850f-5c541ead0101', 'base', '{"user":"anna"}', 300000, '2099-11-22T12:05:00.000Z', 'pause', 1, 1, 'localhost:${PORT}', '{"allowOut":["1.1.1.1"],"denyOut":["0.0.0.0/0"]}', null);
insert into e2b_tokens (sandbox_id, key_id)
  values ('sbx_01a2031c-779f-7745-850f-5c541ead0101', 'key_01a2031c-70b2-7512-9f52-0f37d1e1a4f5');
