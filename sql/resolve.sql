-- Records a person's decision about an action whose outcome is unknown. Refused with OB412 where evidence does not allow
-- it.
--
-- $1 uuid action, $2 text decision (happened | did_not_happen | send_again), $3 text by, $4 text reason
-- $5 text receipt, or null
-- Rows: one, what the function answers.
select outbox.resolve($1, $2, $3, $4, $5)::text as answer
