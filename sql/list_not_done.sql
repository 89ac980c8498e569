-- Actions that were closed as not done, the youngest first.
--
-- Parameters and rows as in list.sql.
-- Index: delivery_not_done from its young end. They are few among many that succeeded, which list.sql would read all.
select d.action_id, d.operation, d.tenant, a.retry_key, d.state::text, outbox.label(d.state, d.step) as label,
  d.reason, d.receipt, d.attempts, d.worker, a.created_at, d.doubt_since, d.due_at, d.closed_at,
  clock_timestamp() as now
from (
  select d.* from outbox.delivery d
  where d.state = 'terminal_failure' and ($1::text is null or d.state = $1) and ($2::text[] is null or d.step = any($2))
    and ($3::text is null or d.operation = $3) and ($4::text is null or d.tenant = $4)
    and d.action_id < least(coalesce($6::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'), case
      when $5::bigint is not null then
        (lpad(to_hex(floor(extract(epoch from statement_timestamp()) * 1000 - $5 / 1000)::bigint), 12, '0')
          || repeat('0', 20))::uuid
      end)
  order by d.action_id desc limit $7) d
join outbox.action a using (action_id)
order by d.action_id desc
