-- Actions in any state, the youngest first.
--
-- $1 text state, $2 text[] steps, $3 text operation, $4 text tenant: null = any
-- $5 bigint committed at least so many microseconds ago, or null
-- $6 uuid only those older than this one, or null
-- $7 bigint the most rows
-- Rows: the action, where it stands, ages in microseconds. Index: the primary key from its young end; ids are dated
-- (version 7), so an age is a place in it. What is rare among many closed
-- rows is found by list_open.sql and list_not_done.sql.
select d.action_id, d.operation, d.tenant, a.retry_key, d.state::text, outbox.label(d.state, d.step) as label,
  d.reason, d.receipt, d.attempts, d.worker, a.created_at, d.doubt_since, d.due_at, d.closed_at,
  clock_timestamp() as now
from (
  select d.* from outbox.delivery d
  where ($1::text is null or d.state = $1) and ($2::text[] is null or d.step = any($2))
    and ($3::text is null or d.operation = $3) and ($4::text is null or d.tenant = $4)
    and d.action_id < least(coalesce($6::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'), case
      when $5::bigint is not null then
        (lpad(to_hex(floor(extract(epoch from statement_timestamp()) * 1000 - $5 / 1000)::bigint), 12, '0')
          || repeat('0', 20))::uuid
      end)
  order by d.action_id desc limit $7) d
join outbox.action a using (action_id)
order by d.action_id desc
