-- What waits in the outbox of a webhook is bounded: the counts make that cheap to see when an event comes.
alter table webhooks add column waiting integer not null default 0;
alter table webhooks add column waiting_bytes integer not null default 0;
-- Events that found the outbox full, and when the last one did.
alter table webhooks add column dropped integer not null default 0;
alter table webhooks add column last_dropped_at text;
-- Set: this event found the outbox full, and was not sent.
alter table webhook_deliveries add column dropped_at text;

-- Finds the webhooks that have something due, and what of each, however much waits for one that does not answer.
drop index webhook_deliveries_due;
create index webhook_deliveries_due on webhook_deliveries (webhook_id, next_attempt_at)
  where next_attempt_at is not null;
-- Finds the newest of a webhook's log, and what is beyond them.
create index webhook_deliveries_kept on webhook_deliveries (webhook_id, position) where next_attempt_at is null;

update webhooks set
  waiting = (select count(*) from webhook_deliveries d where d.webhook_id = webhooks.id and next_attempt_at is not null),
  waiting_bytes = (select coalesce(sum(length(cast(data as blob))), 0) from webhook_deliveries d
    where d.webhook_id = webhooks.id and next_attempt_at is not null);

create trigger webhook_waiting_insert after insert on webhook_deliveries when new.next_attempt_at is not null begin
  update webhooks set waiting = waiting + 1, waiting_bytes = waiting_bytes + length(cast(new.data as blob))
  where id = new.webhook_id;
end;
create trigger webhook_waiting_update after update of next_attempt_at on webhook_deliveries
when (old.next_attempt_at is null) <> (new.next_attempt_at is null) begin
  update webhooks set waiting = waiting + iif(new.next_attempt_at is null, -1, 1),
    waiting_bytes = waiting_bytes + iif(new.next_attempt_at is null, -1, 1) * length(cast(new.data as blob))
  where id = new.webhook_id;
end;
create trigger webhook_waiting_delete after delete on webhook_deliveries when old.next_attempt_at is not null begin
  update webhooks set waiting = waiting - 1, waiting_bytes = waiting_bytes - length(cast(old.data as blob))
  where id = old.webhook_id;
end;

-- As before, but at most 10,000 events and 8 MiB wait for one webhook. The log shows those beyond as dropped.
drop trigger webhook_outbox;
create trigger webhook_outbox after insert on events begin
  insert into webhook_deliveries (id, webhook_id, type, data, created_at, queued_at, next_attempt_at, dropped_at)
  select 'dlv_' || lower(hex(randomblob(16))), w.id, new.type, new.data, new.created_at, new.created_at,
    iif(w.waiting < 10000 and w.waiting_bytes < 8388608, new.created_at, null),
    iif(w.waiting < 10000 and w.waiting_bytes < 8388608, null, new.created_at)
  from webhooks w
  where w.team_id = new.team_id and w.disabled_at is null
    and exists (select 1 from json_each(w.events) where value = new.type);
end;
create trigger webhook_dropped after insert on webhook_deliveries when new.dropped_at is not null begin
  update webhooks set dropped = dropped + 1, last_dropped_at = new.dropped_at where id = new.webhook_id;
end;
