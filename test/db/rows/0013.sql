insert into sessions (id, team_id, key_id, configured_key_hash, hash, browser, created_at, expires_at)
  values ('ses_01a2031c-7c6e-7271-a52e-12eb5f8197e3', 'team_01a2031c-70ae-70d7-a719-2fd397bec50f', 'key_01a2031c-70af-7057-b6ff-cbc359d0c98a', null, '3f3af1ecebbd1410ab417ec0d27bbfcb5d340e177ae159b59fc8626c2dfd9175', 'Firefox on Linux', '2026-01-08T11:55:28.080Z', '2126-01-01T00:00:00.000Z');
insert into sign_in_links (hash, team_id, key_id, expires_at)
  values ('b1b1bdb480c61d075300d9bff7d9cb69cf31695ea048e478facadf426e8d0fb0', 'team_01a2031c-70ae-70d7-a719-2fd397bec50f', null, '2126-01-01T00:00:00.000Z');
