insert into snapshots (id, team_id, name, state, backend, sandbox_id, agent_slug, agent_name, envs, cwd, network, limits,
    timeout_ms, deployment_id, bundle, external_user_id, bytes, frozen_ms, method, fork_method, created_at)
  values ('snap_01a2031c-7d75-7f11-9c34-6a0c0cc0a7d1', 'team_01a2031c-70ae-70d7-a719-2fd397bec50f', 'before-update', 'ready', 'nsjail', 'sbx_01a2031c-779f-7745-850f-5c541ead0101', 'echo', 'Echo', '{}', '/home/user', '{}', '{"memoryMb":512}',
    null, null, null, null, 1048576, 4, 'copy', 'layers', '2026-11-22T12:00:00.000Z');
