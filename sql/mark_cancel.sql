-- Records that cancels by key are about to leave. From then on the key is spent, whatever becomes of the cancel: a
-- success that is told of later may have been cancelled, and nothing may leave under that key any more.
--
-- $1 uuid[] actions, sorted; $2 bigint[] fences; $3 uuid[] attempt_ids
-- Rows: action_id of what is recorded. What is missing has been overtaken and must not be cancelled.
update outbox.delivery d set cancel_sent_at = coalesce(d.cancel_sent_at, clock_timestamp())
from unnest($1::uuid[], $2::bigint[], $3::uuid[]) as t(action_id, fence, attempt_id)
where d.action_id = t.action_id and d.fence = t.fence and d.attempt_id = t.attempt_id and d.state = 'dispatching'
  and d.step = 'cancel' and d.due_at > clock_timestamp()
returning d.action_id
