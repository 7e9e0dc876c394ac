-- Where a team wants to be told of its events.
create table webhooks (
  id text primary key,
  team_id text not null references teams on delete cascade,
  url text not null,
  -- Types of events, as JSON.
  events text not null,
  -- Encrypted.
  secret text not null,
  created_at text not null,
  -- Since when nothing is sent, because its receiver said that it is gone.
  disabled_at text
) strict;
create index webhooks_team on webhooks (team_id);

-- The outbox and the log of what was sent. A row is written in the transaction of its event.
create table webhook_deliveries (
  position integer primary key autoincrement,
  -- What the receiver gets as webhook-id: the same for each try.
  id text not null unique,
  webhook_id text not null references webhooks on delete cascade,
  type text not null,
  data text not null,
  created_at text not null,
  -- From when on its tries count: redelivered, it has a day again.
  queued_at text not null,
  attempts integer not null default 0,
  -- Null: it is delivered, or given up.
  next_attempt_at text,
  last_attempt_at text,
  last_status integer,
  last_error text,
  delivered_at text
) strict;
create index webhook_deliveries_due on webhook_deliveries (next_attempt_at) where next_attempt_at is not null;
create index webhook_deliveries_ended on webhook_deliveries (created_at) where next_attempt_at is null;
create index webhook_deliveries_log on webhook_deliveries (webhook_id, position);

create trigger webhook_outbox after insert on events begin
  insert into webhook_deliveries (id, webhook_id, type, data, created_at, queued_at, next_attempt_at)
  select 'dlv_' || lower(hex(randomblob(16))), w.id, new.type, new.data, new.created_at, new.created_at, new.created_at
  from webhooks w
  where w.team_id = new.team_id and w.disabled_at is null
    and exists (select 1 from json_each(w.events) where value = new.type);
end;
