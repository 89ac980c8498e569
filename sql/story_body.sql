-- The bytes that are sent for an action.
--
-- $1 uuid action
-- Rows: one or none; null where it has no body. By the primary key.
select a.body from outbox.action a where a.action_id = $1
