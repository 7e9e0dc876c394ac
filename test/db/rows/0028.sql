update sandboxes set name = 'session-1' where id = (select min(id) from sandboxes);
