-- Open actions, the youngest first. Reads no closed row.
--
-- Parameters and rows as in list.sql.
-- Index: delivery_due, delivery_held and delivery_unplaced, which together hold every open row.
with open as materialized (
  select d.* from outbox.delivery d
  where d.due_at is not null and (d.lane is null or d.turn)
    and ($1::text is null or d.state = $1) and ($2::text[] is null or d.step = any($2))
    and ($3::text is null or d.operation = $3) and ($4::text is null or d.tenant = $4)
  union all
  select d.* from outbox.delivery d
  where d.due_at is null and d.closed_at is null
    and ($1::text is null or d.state = $1) and ($2::text[] is null or d.step = any($2))
    and ($3::text is null or d.operation = $3) and ($4::text is null or d.tenant = $4)
  union all
  (select d.* from outbox.delivery d
  where d.lane is not null and (not d.turn and d.due_at is not null or d.turn and d.closed_at is not null and not d.holds)
    and d.closed_at is null
    and ($1::text is null or d.state = $1) and ($2::text[] is null or d.step = any($2))
    and ($3::text is null or d.operation = $3) and ($4::text is null or d.tenant = $4)
  order by d.place)
), page as materialized (
  select d.* from open d
  where d.action_id < least(coalesce($6::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'), case
    when $5::bigint is not null then
      (lpad(to_hex(floor(extract(epoch from statement_timestamp()) * 1000 - $5 / 1000)::bigint), 12, '0')
        || repeat('0', 20))::uuid
    end)
  order by d.action_id desc limit $7
)
select d.action_id, d.operation, d.tenant, a.retry_key, d.state::text, outbox.label(d.state, d.step) as label,
  d.reason, d.receipt, d.attempts, d.worker, a.created_at, d.doubt_since, d.due_at, d.closed_at,
  clock_timestamp() as now
from page d join outbox.action a using (action_id)
order by d.action_id desc
