-- Actions that only a person can decide, the longest unknown first.
--
-- Parameters and rows as in list.sql, but that $5 is how long the outcome has been unknown, and $6 goes on behind that
-- action in this order; from the start where it is no longer among them.
-- Index: delivery_held, where these are apart from parked rows.
with held as materialized (
  select d.* from outbox.delivery d
  where d.due_at is null and d.closed_at is null and d.step = 'review'
    and ($1::text is null or d.state = $1) and ($2::text[] is null or d.step = any($2))
    and ($3::text is null or d.operation = $3) and ($4::text is null or d.tenant = $4)
    and ($5::bigint is null or d.doubt_since <= statement_timestamp() - $5 * interval '1 microsecond')
), page as materialized (
  select d.* from held d
  where (d.doubt_since, d.action_id) > (
    coalesce((select h.doubt_since from held h where h.action_id = $6::uuid), '-infinity'),
    coalesce((select h.action_id from held h where h.action_id = $6::uuid), '00000000-0000-0000-0000-000000000000'))
  order by d.doubt_since, d.action_id limit $7
)
select d.action_id, d.operation, d.tenant, a.retry_key, d.state::text, outbox.label(d.state, d.step) as label,
  d.reason, d.receipt, d.attempts, d.worker, a.created_at, d.doubt_since, d.due_at, d.closed_at,
  clock_timestamp() as now
from page d join outbox.action a using (action_id)
order by d.doubt_since, d.action_id
