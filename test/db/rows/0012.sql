insert into remembered_rules (id, team_id, agent_slug, thread_id, rule, created_at)
  values ('rule_01a2031c-7c6e-7271-a52e-12eb5f8197e1', 'team_01a2031c-70ae-70d7-a719-2fd397bec50f', 'asking', 'thr_01a2031c-7b12-7194-a2cd-8e01857863bb', 'Run', '2026-01-08T11:55:28.080Z');
insert into remembered_rules (id, team_id, agent_slug, thread_id, rule, created_at)
  values ('rule_01a2031c-7c6e-7271-a52e-12eb5f8197e2', 'team_01a2031c-70ae-70d7-a719-2fd397bec50f', 'asking', null, 'Read', '2026-01-08T11:55:28.080Z');
