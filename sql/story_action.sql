-- An action as it was committed, where it stands, and what stops it.
--
-- $1 uuid action
-- Rows: one; none where there is no such action (any more). By primary keys. No body: only its size and its hash, so
-- that looking at an action never costs what it weighs.
select clock_timestamp() as now,
  a.tenant, a.principal, a.operation, a.retry_key, a.event_id, a.proposal_id, a.workflow_id, a.traceparent,
  a.params::text as params, array(select json_object_keys(a.headers)) as header_names, a.content_type,
  octet_length(a.body)::bigint as body_bytes, encode(sha256(a.body), 'hex') as body_sha256,
  a.ordering_key, a.not_before, a.expires_at, a.authority, a.compensates, a.created_at,
  d.state::text, d.step::text, outbox.label(d.state, d.step) as label,
  (select s.sentence from outbox.status s where s.action_id = a.action_id) as sentence,
  d.due_at, d.fence, d.attempt_id, d.attempts, d.worker, d.budget_from, d.first_sent_at, d.last_sent_at, d.doubt_since,
  d.doubt_attempt, d.proof, d.cancel_sent_at, d.override, d.sent_digest, d.reason, d.receipt,
  d.lane is not null and not d.turn as parked, d.closed_at,
  c.requested_at as cancel_requested_at, c.requested_by as cancel_requested_by, c.reason as cancel_reason,
  o.destination as inventory_destination, o.contract as inventory_contract, o.owner as inventory_owner
from outbox.action a
join outbox.delivery d using (action_id)
left join outbox.cancellation c using (action_id)
left join outbox.operation o on o.operation = a.operation
where a.action_id = $1
