-- Requests that an action is not sent any more. Refused with OB412 where it is closed.
--
-- $1 uuid action, $2 text by, $3 text reason
-- Rows: one: `cancelled`, or `requested` where a worker holds it or it is in doubt.
select outbox.cancel($1, $2, $3)::text as answer
