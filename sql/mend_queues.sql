-- Marks serial queues that nobody moves on, of so many from $1 on. See outbox.mend_queues in
-- sql/migrations/V8__lanes.sql.
--
-- $1 bigint the queue to begin with; null = the first one
-- Rows: one: how many were marked, and the queue to go on behind; null = these were the last ones.
select m.mended, m.next_after from outbox.mend_queues($1::bigint) m
