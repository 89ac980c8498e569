-- What became of rows that a settle did not write.
--
-- $1 uuid[] actions, $2 uuid[] the attempt_id of each claim
-- Rows: one for each claim whose row is there, `claim` is its attempt_id; the row as it stands; `settled_before` = what this
-- attempt learnt is in the history, so its settle was applied before (a COMMIT whose answer was lost).
select t.attempt_id as claim, d.fence, d.attempt_id, d.state, d.doubt_since, d.doubt_attempt, d.proof, d.first_sent_at, d.last_sent_at,
  d.sent_digest,
  exists (select from outbox.attempt h
    where h.action_id = t.action_id and h.attempt_id = t.attempt_id and h.evidence <> 'lapsed') as settled_before
from unnest($1::uuid[], $2::uuid[]) as t(action_id, attempt_id)
join outbox.delivery d using (action_id)
