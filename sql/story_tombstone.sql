-- What is remembered of an action that was pruned.
--
-- $1 uuid action
-- Rows: one or none. By the primary key.
select clock_timestamp() as now, t.tenant, t.principal, t.operation, t.retry_key, t.state, t.receipt, t.created_at,
  t.closed_at
from outbox.tombstone t where t.action_id = $1
