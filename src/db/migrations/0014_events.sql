-- What has happened in each team, for readers that follow it. Triggers write it in the transaction of the change itself, whichever
-- process makes it. Ids and states alone: no text of anybody.
create table events (
  id integer primary key autoincrement,
  team_id text not null references teams on delete cascade,
  type text not null,
  -- For tokens, which see those of their agents and their user.
  agent_slug text,
  user_id text,
  sandbox_id text,
  data text not null,
  created_at text not null
) strict;
create index events_created on events (created_at);

create trigger sandbox_created after insert on sandboxes begin
  insert into events (team_id, type, agent_slug, user_id, sandbox_id, data, created_at)
  values (new.team_id, 'sandbox.created', new.agent_slug, new.external_user_id, new.id,
    json_object('sandboxId', new.id, 'agent', new.agent_slug), strftime('%Y-%m-%dT%H:%M:%fZ', 'now'));
end;
create trigger sandbox_changed after update of network, status on sandboxes begin
  insert into events (team_id, type, agent_slug, user_id, sandbox_id, data, created_at)
  values (new.team_id, 'sandbox.changed', new.agent_slug, new.external_user_id, new.id,
    json_object('sandboxId', new.id, 'agent', new.agent_slug), strftime('%Y-%m-%dT%H:%M:%fZ', 'now'));
end;
create trigger sandbox_deleted after delete on sandboxes begin
  insert into events (team_id, type, agent_slug, user_id, sandbox_id, data, created_at)
  select old.team_id, 'sandbox.deleted', old.agent_slug, old.external_user_id, old.id,
    json_object('sandboxId', old.id, 'agent', old.agent_slug), strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
  where exists (select 1 from teams where id = old.team_id);
end;

create trigger thread_created after insert on threads begin
  insert into events (team_id, type, agent_slug, user_id, sandbox_id, data, created_at)
  select s.team_id, 'thread.created', s.agent_slug, new.external_user_id, s.id,
    json_object('threadId', new.id, 'sandboxId', s.id, 'agent', s.agent_slug, 'status', new.status),
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
  from sandboxes s where s.id = new.sandbox_id;
end;
create trigger thread_changed after update of name, status on threads
  when old.status is not new.status or old.name is not new.name begin
  insert into events (team_id, type, agent_slug, user_id, sandbox_id, data, created_at)
  select s.team_id, 'thread.changed', s.agent_slug, new.external_user_id, s.id,
    json_object('threadId', new.id, 'sandboxId', s.id, 'agent', s.agent_slug, 'status', new.status),
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
  from sandboxes s where s.id = new.sandbox_id;
end;
-- The threads of a deleted sandbox go without a word: the sandbox's own event says it.
create trigger thread_deleted after delete on threads begin
  insert into events (team_id, type, agent_slug, user_id, sandbox_id, data, created_at)
  select s.team_id, 'thread.deleted', s.agent_slug, old.external_user_id, s.id,
    json_object('threadId', old.id, 'sandboxId', s.id, 'agent', s.agent_slug),
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
  from sandboxes s where s.id = old.sandbox_id;
end;

create trigger run_started after insert on runs begin
  insert into events (team_id, type, agent_slug, user_id, sandbox_id, data, created_at)
  select s.team_id, 'run.started', s.agent_slug, t.external_user_id, s.id,
    json_object('runId', new.id, 'threadId', new.thread_id, 'sandboxId', s.id, 'agent', s.agent_slug),
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
  from threads t join sandboxes s on s.id = t.sandbox_id where t.id = new.thread_id;
end;
create trigger run_ended after update of status on runs when old.status = 'active' and new.status <> 'active' begin
  insert into events (team_id, type, agent_slug, user_id, sandbox_id, data, created_at)
  select s.team_id, 'run.ended', s.agent_slug, t.external_user_id, s.id,
    json_object('runId', new.id, 'threadId', new.thread_id, 'sandboxId', s.id, 'agent', s.agent_slug,
      'status', new.status, 'costUsd', new.cost_usd),
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
  from threads t join sandboxes s on s.id = t.sandbox_id where t.id = new.thread_id;
end;

create trigger approval_requested after insert on approvals begin
  insert into events (team_id, type, agent_slug, user_id, sandbox_id, data, created_at)
  select new.team_id, 'approval.requested', s.agent_slug, t.external_user_id, s.id,
    json_object('approvalId', new.id, 'kind', new.kind, 'tool', new.tool, 'toolCallId', new.tool_call_id,
      'runId', new.run_id, 'threadId', new.thread_id, 'sandboxId', s.id, 'agent', s.agent_slug),
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
  from threads t join sandboxes s on s.id = t.sandbox_id where t.id = new.thread_id;
end;
create trigger approval_decided after update of status on approvals when old.status is not new.status begin
  insert into events (team_id, type, agent_slug, user_id, sandbox_id, data, created_at)
  select new.team_id, 'approval.decided', s.agent_slug, t.external_user_id, s.id,
    json_object('approvalId', new.id, 'kind', new.kind, 'tool', new.tool, 'status', new.status,
      'threadId', new.thread_id, 'sandboxId', s.id, 'agent', s.agent_slug),
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
  from threads t join sandboxes s on s.id = t.sandbox_id where t.id = new.thread_id;
end;

create trigger agent_created after insert on agents begin
  insert into events (team_id, type, agent_slug, data, created_at)
  values (new.team_id, 'agent.changed', new.slug, json_object('agent', new.slug),
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now'));
end;
create trigger agent_changed after update on agents begin
  insert into events (team_id, type, agent_slug, data, created_at)
  values (new.team_id, 'agent.changed', new.slug, json_object('agent', new.slug),
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now'));
end;
create trigger agent_removed after delete on agents begin
  insert into events (team_id, type, agent_slug, data, created_at)
  select old.team_id, 'agent.removed', old.slug, json_object('agent', old.slug),
    strftime('%Y-%m-%dT%H:%M:%fZ', 'now')
  where exists (select 1 from teams where id = old.team_id);
end;
