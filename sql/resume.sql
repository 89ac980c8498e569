-- Asks the daemons to probe a destination at once.
--
-- $1 text destination, $2 text who, $3 text why
-- Rows: one: how many daemons have said that it is paused
select outbox.resume($1, $2, $3)
