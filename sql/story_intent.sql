-- What is sent for an action, whole.
--
-- $1 uuid action
-- Rows: one or none. By the primary key.
select a.tenant, a.operation, a.traceparent, a.params::text as params, a.headers::text as headers, a.content_type, a.body
from outbox.action a where a.action_id = $1
