insert into deployments (id, agent_id, version, made_by, definition, model, tools, bundle, template, created_at)
  values ('dep_01a2031c-7141-7468-8834-01e0ee5e4602', 'agt_01a2031c-7a2f-7041-9414-f724d0c62ebd', 1, 'edit', '{"name":"asking","engine":"asking","sandbox":{"files":{},"envs":{},"setup":[],"limits":{}},"options":{}}', null, '[]', null, null, '2026-01-09T11:55:29.090Z');
update agents set operator_limits = '{"memoryMb":512}', deployment_id = 'dep_01a2031c-7141-7468-8834-01e0ee5e4602' where id = 'agt_01a2031c-7a2f-7041-9414-f724d0c62ebd';
