-- Actions with this retry key, the youngest first: of any tenant, operation and principal, and those of which only a
-- tombstone is left, whose label is `pruned`.
--
-- $1 text retry_key; $2 text operation, $3 text tenant: null = any
-- $4 uuid only those older than this one, or null
-- $5 bigint the most rows
-- Rows: as in list.sql; attempts is null where the history went with the action. Index: action_identity and
-- tombstone_identity, which begin with tenant and operation: the pairs that there are are walked, one probe each.
with recursive kind (tenant, operation) as (
  (select a.tenant, a.operation from outbox.action a order by a.tenant, a.operation limit 1)
  union all
  select n.tenant, n.operation from kind k cross join lateral (
    select a.tenant, a.operation from outbox.action a where (a.tenant, a.operation) > (k.tenant, k.operation)
    order by a.tenant, a.operation limit 1) n
), grave (tenant, operation) as (
  (select t.tenant, t.operation from outbox.tombstone t order by t.tenant, t.operation limit 1)
  union all
  select n.tenant, n.operation from grave g cross join lateral (
    select t.tenant, t.operation from outbox.tombstone t where (t.tenant, t.operation) > (g.tenant, g.operation)
    order by t.tenant, t.operation limit 1) n
), named as (
  select d.action_id, d.operation, d.tenant, a.retry_key, d.state::text, outbox.label(d.state, d.step) as label,
    d.reason, d.receipt, d.attempts, d.worker, a.created_at, d.doubt_since, d.due_at, d.closed_at
  from kind k
  join outbox.action a on a.tenant = k.tenant and a.operation = k.operation and a.retry_key = $1
  join outbox.delivery d using (action_id)
  union all
  select t.action_id, t.operation, t.tenant, t.retry_key, t.state, 'pruned',
    null, t.receipt, null, null, t.created_at, null, null, t.closed_at
  from grave g
  join outbox.tombstone t on t.tenant = g.tenant and t.operation = g.operation and t.retry_key = $1
)
select n.*, clock_timestamp() as now
from named n
where ($2::text is null or n.operation = $2) and ($3::text is null or n.tenant = $3)
  and ($4::uuid is null or n.action_id < $4)
order by n.action_id desc limit $5
