-- Records a person's decision that the next of a serial queue goes on, which a failure holds. Refused with OB412 where
-- it holds nothing.
--
-- $1 uuid action, $2 text by, $3 text reason
-- Rows: one, what the function answers.
select outbox.release($1, $2, $3)::text as answer
