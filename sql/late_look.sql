-- The row about which late testimony has come, locked until it is written down.
--
-- $1 uuid action, $2 uuid attempt_id of the overtaken claim
-- `attempt_known`: it is in the history, also as testimony given before (a COMMIT whose answer was lost).
select d.state, d.doubt_since, d.doubt_attempt, d.cancel_sent_at is not null as cancel_sent,
  exists (select from outbox.attempt h where h.action_id = d.action_id and h.attempt_id = $2) as attempt_known
from outbox.delivery d where d.action_id = $1 for update
