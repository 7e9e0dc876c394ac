-- Threads and runs are listed by team, newest first. Triggers fill these columns. Their names are not those of sandboxes,
-- with which both are joined.
alter table threads add column list_team_id text;
alter table threads add column list_agent_slug text;
-- Grows with each thread: the search index is read in its order.
alter table threads add column search_number integer;
-- How many messages of the thread have had a place in the search index.
alter table threads add column search_count integer not null default 0;
alter table messages add column search_id integer;
alter table runs add column list_team_id text;

update threads set
  list_team_id = (select team_id from sandboxes where sandboxes.id = sandbox_id),
  list_agent_slug = (select agent_slug from sandboxes where sandboxes.id = sandbox_id),
  search_count = (select count(*) from messages where thread_id = threads.id);
update threads set search_number = numbered.number
  from (select id, row_number() over (order by id) as number from threads) as numbered where numbered.id = threads.id;
update messages set search_id = numbered.number
  from (
    select messages.rowid as message, (search_number << 24) | row_number() over (partition by thread_id order by position) as number
    from messages join threads on threads.id = thread_id
  ) as numbered where numbered.message = messages.rowid;
update runs set list_team_id = (select team_id from sandboxes where sandboxes.id = sandbox_id);

create unique index threads_search on threads (search_number);
create index threads_team on threads (list_team_id, id);
create index threads_agent on threads (list_team_id, list_agent_slug, id);
create index threads_user on threads (list_team_id, external_user_id, id);
create index threads_status on threads (list_team_id, status, id);
create index runs_team on runs (list_team_id, id);
create index runs_status on runs (list_team_id, status, id);
create index runs_of_sandbox on runs (sandbox_id, id);

-- What was said, by `search_id`. `scope` has words for the team, agent, sandbox and user of the thread; they begin with a
-- character for private use, so that they are apart from the words of `text`.
create virtual table message_search using fts5 (
  text, scope, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
create virtual table message_words using fts5vocab (message_search, instance);
-- The text of a message: a very long one is found by its beginning.
create view searchable_messages as
  select search_id, thread_id, messages.id, text,
    char(57344) || 't' || hex(list_team_id) || ' ' || char(57344) || 'a' || hex(list_agent_slug) || ' ' || char(57344) || 's' || hex(sandbox_id)
      || coalesce(' ' || char(57344) || 'u' || hex(external_user_id), '') as scope
  from (
    select search_id, thread_id, id, substr((
        select group_concat(case json_each.type when 'object' then value ->> '$.text' end, char(10))
        from json_each(case when json_valid(parts) then parts else '[]' end)
        where case json_each.type when 'object' then value ->> '$.type' end = 'text'
      ), 1, 100000) as text
    from messages where role in ('user', 'assistant')
  ) as messages join threads on threads.id = thread_id
  where text <> '';
-- The more of it is collected before it is written, the less is merged again.
insert into message_search (message_search, rank) values ('hashsize', 67108864);
insert into message_search (rowid, text, scope) select search_id, text, scope from searchable_messages;
insert into message_search (message_search, rank) values ('hashsize', 1048576);

create trigger threads_listed after insert on threads begin
  update threads set
    search_number = (select coalesce(max(search_number), 0) + 1 from threads),
    list_team_id = (select team_id from sandboxes where sandboxes.id = new.sandbox_id),
    list_agent_slug = (select agent_slug from sandboxes where sandboxes.id = new.sandbox_id)
  where id = new.id;
end;
create trigger runs_listed after insert on runs begin
  update runs set list_team_id = (select team_id from sandboxes where sandboxes.id = new.sandbox_id) where id = new.id;
end;
create trigger messages_added after insert on messages begin
  update threads set search_count = search_count + 1 where id = new.thread_id;
  update messages set search_id = (
      select (search_number << 24) | (search_count & 16777215) from threads where threads.id = new.thread_id
    ) where thread_id = new.thread_id and id = new.id;
  insert or replace into message_search (rowid, text, scope)
    select search_id, text, scope from searchable_messages where thread_id = new.thread_id and id = new.id;
end;
create trigger messages_changed after update of parts on messages begin
  delete from message_search where rowid = new.search_id;
  insert into message_search (rowid, text, scope)
    select search_id, text, scope from searchable_messages where thread_id = new.thread_id and id = new.id;
end;
create trigger messages_removed after delete on messages begin
  delete from message_search where rowid = old.search_id;
end;
