-- Marks sends that are about to leave, of operations that can neither resend nor ask. Until the mark a crash is known
-- to have come before the send.
--
-- $1 uuid[] actions, sorted; $2 bigint[] fences; $3 uuid[] attempt_ids
-- Rows: action_id of what is marked. What is missing has been overtaken and must not be sent.
update outbox.delivery d set
  marked_at = clock_timestamp(),
  first_sent_at = coalesce(d.first_sent_at, clock_timestamp()),
  last_sent_at = greatest(d.last_sent_at, d.due_at)
from unnest($1::uuid[], $2::bigint[], $3::uuid[]) as t(action_id, fence, attempt_id)
where d.action_id = t.action_id and d.fence = t.fence and d.attempt_id = t.attempt_id and d.state = 'dispatching'
  and d.step = 'send' and d.due_at > clock_timestamp()
returning d.action_id
