insert into waiting_replies (thread_id, message_id, request, tries)
  values ('thr_01a2031c-7b12-7194-a2cd-8e01857863bb', 'msg_01a2031c-7b13-74da-b157-6554e8781665', '{"options":{"stream":"full"},"keyId":"key_01a2031c-70af-7057-b6ff-cbc359d0c98a","agentSlug":"asking"}', 1);
insert into client_calls (thread_id, message_id, tool_call_id, run_id, tool, input, status, created_at, expires_at, answered_at, answer, used_at)
  values ('thr_01a2031c-7b12-7194-a2cd-8e01857863bb', 'msg_01a2031c-7b13-74da-b157-6554e8781665', 'call_0_0_3', 'run_01a2031c-7b13-74d9-8e06-2b586dcb7077', 'pick', '{"of":"size"}', 'answered', '2026-01-07T11:55:27.070Z', '2126-11-23T11:55:27.897Z', '2026-01-08T11:55:28.080Z', '{"output":"large"}', null);
