-- Gives turns in serial queues, and parks what has arrived. See outbox.promote in sql/migrations/V8__lanes.sql.
--
-- Rows: one: how many rows were changed, and how many of them got their turn.
select p.moved, p.turns from outbox.promote() p
