-- Where an action stands, for whoever has just decided something about it.
--
-- $1 uuid action
-- Rows: one or none. By primary keys.
select s.state, s.label, s.sentence from outbox.status s where s.action_id = $1
