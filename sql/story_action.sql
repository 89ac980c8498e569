-- An action as it was committed, where it stands, and what stops it. Not what is in it.
--
-- $1 uuid action
-- Rows: one; none where there is no such action (any more). By primary keys. `may_read` says whether this role may read
-- what story_content.sql reads.
select clock_timestamp() as now,
  has_column_privilege('outbox.action', 'body', 'select') as may_read,
  a.tenant, a.principal, a.operation, a.retry_key, a.event_id, a.proposal_id, a.workflow_id, a.traceparent,
  a.content_type, a.ordering_key, a.not_before, a.expires_at, a.authority, a.compensates, a.created_at,
  d.state::text, d.step::text, outbox.label(d.state, d.step) as label,
  (select s.sentence from outbox.status s where s.action_id = a.action_id) as sentence,
  outbox.took_effect(d.action_id) as took_effect,
  d.due_at, d.fence, d.attempt_id, d.attempts, d.worker, d.budget_from, d.first_sent_at, d.last_sent_at, d.doubt_since,
  d.doubt_attempt, d.proof, d.cancel_sent_at, d.override, d.sent_digest, d.reason, d.receipt,
  d.closed_at,
  c.requested_at as cancel_requested_at, c.requested_by as cancel_requested_by, c.reason as cancel_reason,
  o.destination as inventory_destination, o.contract as inventory_contract, o.owner as inventory_owner,
  (extract(epoch from o.absence) * 1000000)::bigint as inventory_absence, o.operation is not null as is_inventoried
from outbox.action a
join outbox.delivery d using (action_id)
left join outbox.cancellation c using (action_id)
left join outbox.operation o on o.operation = a.operation
where a.action_id = $1
