-- A fork, an edit and a switch of branches move all messages of a thread in one transaction. They have their places in the
-- search index later, in steps: see late-index.ts. This table has a row, within such a transaction only.
create table search_bulk (is_on integer not null) strict;
-- Messages that have no place yet.
create table search_added (number integer primary key, thread_id text not null, message_id text not null) strict;
-- Places of messages that are gone.
create table search_removed (search_id integer primary key) strict;

drop trigger messages_added;
drop trigger messages_changed;
drop trigger messages_removed;
create trigger messages_added after insert on messages when not exists (select 1 from search_bulk) begin
  update threads set search_count = search_count + 1 where id = new.thread_id;
  update messages set search_id = (
      select (search_number << 24) | (search_count & 16777215) from threads where threads.id = new.thread_id
    ) where thread_id = new.thread_id and id = new.id;
  -- A thread may have the number of one that was deleted.
  delete from search_removed where search_id = (select search_id from messages where thread_id = new.thread_id and id = new.id);
  insert or replace into message_search (rowid, text, scope)
    select search_id, text, scope from searchable_messages where thread_id = new.thread_id and id = new.id;
end;
create trigger messages_added_in_bulk after insert on messages when exists (select 1 from search_bulk) begin
  insert into search_added (thread_id, message_id) values (new.thread_id, new.id);
end;
create trigger messages_changed after update of parts on messages when new.search_id is not null begin
  delete from message_search where rowid = new.search_id;
  insert into message_search (rowid, text, scope)
    select search_id, text, scope from searchable_messages where thread_id = new.thread_id and id = new.id;
end;
create trigger messages_removed after delete on messages when not exists (select 1 from search_bulk) begin
  delete from message_search where rowid = old.search_id;
end;
create trigger messages_removed_in_bulk after delete on messages
  when old.search_id is not null and exists (select 1 from search_bulk) begin
  insert or ignore into search_removed (search_id) values (old.search_id);
end;
