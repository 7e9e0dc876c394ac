-- Set when the team is closed: its sandboxes are removed, then the team.
alter table teams add column removed_at text;
