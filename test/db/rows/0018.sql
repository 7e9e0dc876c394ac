insert into api_keys (id, team_id, name, hash, hint, created_at, expires_at, revoked_at, scopes)
  values ('key_01a2031c-70b0-770e-9fed-008df4f06418', 'team_01a2031c-70ae-70d7-a719-2fd397bec50f', 'reader', '2f81e0e7fcc98898b552c4ed01e1423bb0f094da2f76ad62bbb7ee4ef7cfe1a1', 'ader', '2026-01-09T11:55:29.090Z', null, null, '["read"]');
