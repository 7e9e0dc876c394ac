-- What a key may do, as a list; null: everything.
alter table api_keys add column scopes text;
