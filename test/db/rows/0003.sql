insert into deployments (id, agent_id, version, definition, model, tools, bundle, template, created_at)
  values ('dep_01a2031c-7141-7468-8834-01e0ee5e4601', 'agt_01a2031c-70ae-70d8-8a9f-a482cb27c1b0', 1, {{sealed deployments.definition dep_01a2031c-7141-7468-8834-01e0ee5e4601 '{"name":"Echo","engine":"echo","sandbox":{"files":{},"envs":{"TOKEN":"secret-version"},"setup":[],"limits":{}},"options":{}}'}}, null, '[{"name":"add","description":"Adds.","inputSchema":{"type":"object"}}]', 'sha256-0123456789abcdef', null, '2026-01-03T11:55:23.030Z');
update agents set deployment_id = 'dep_01a2031c-7141-7468-8834-01e0ee5e4601', env = {{sealed agents.env agt_01a2031c-70ae-70d8-8a9f-a482cb27c1b0 '{"LATER":"secret-env"}'}} where id = 'agt_01a2031c-70ae-70d8-8a9f-a482cb27c1b0';
update sandboxes set deployment_id = 'dep_01a2031c-7141-7468-8834-01e0ee5e4601', bundle = 'sha256-0123456789abcdef' where id = 'sbx_01a2031c-779f-7745-850f-5c541ead0101';
insert into agent_logs (agent_id, at, source, level, sandbox_id, text)
  values ('agt_01a2031c-70ae-70d8-8a9f-a482cb27c1b0', '2026-01-03T11:55:23.030Z', 'deploy', 'info', null, 'version 1');
insert into agent_logs (agent_id, at, source, level, sandbox_id, text)
  values ('agt_01a2031c-70ae-70d8-8a9f-a482cb27c1b0', '2026-01-03T11:55:23.030Z', 'tools', 'error', 'sbx_01a2031c-779f-7745-850f-5c541ead0101', 'add failed');
