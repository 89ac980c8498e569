-- Records a person's decision that a closed action is tried again, with new budgets. Refused with OB412 where evidence
-- does not allow it.
--
-- $1 uuid action, $2 text by, $3 text reason
-- Rows: one, what the function answers.
select outbox.retry($1, $2, $3)::text as answer
