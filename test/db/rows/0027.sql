insert into secrets (id, team_id, name, value, created_at, updated_at)
  values ('sec_01a2031c-7896-7090-ba3b-d676c9e65ef1', 'team_01a2031c-70ae-70d7-a719-2fd397bec50f', 'GITHUB', {{sealed secrets.value sec_01a2031c-7896-7090-ba3b-d676c9e65ef1 'ghp_c2VjcmV0'}}, '2026-11-22T15:00:00.000Z', '2026-11-22T15:00:00.000Z');
