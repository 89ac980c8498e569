-- Open rows of each operation, by what they wait for. Reads no closed row.
--
-- $1 bigint the most rows that are counted of each index, so that a large backlog costs a bounded time
-- Rows: one for each operation with open rows; ages in microseconds, null where there is none. `all_counted` is false
-- where a bound was met. Index: delivery_due, delivery_held and delivery_unplaced, which together hold every open row.
with due as materialized (
  select d.operation, d.state, d.step, d.due_at, d.doubt_since from outbox.delivery d
  where d.due_at is not null and (d.lane is null or d.turn) limit $1
), held as materialized (
  select d.operation, d.state, d.step, d.due_at, d.doubt_since from outbox.delivery d
  where d.due_at is null and d.closed_at is null limit $1
), arrived as materialized (
  select d.operation, d.state, d.step, null::timestamptz as due_at, d.doubt_since from outbox.delivery d
  where d.lane is not null and (not d.turn and d.due_at is not null or d.turn and d.closed_at is not null and not d.holds)
    and d.closed_at is null
  order by d.place limit $1
)
select o.operation,
  count(*) filter (where o.state = 'pending' and o.due_at <= statement_timestamp()) as due,
  count(*) filter (where o.state = 'pending' and o.due_at > statement_timestamp()) as scheduled,
  count(*) filter (where o.state = 'retryable_failure') as retrying,
  count(*) filter (where o.state = 'dispatching') as in_flight,
  count(*) filter (where o.state = 'outcome_unknown' and o.step = 'send') as resend,
  count(*) filter (where o.state = 'outcome_unknown' and o.step in ('lookup', 'cancel', 'conclude')) as lookup,
  count(*) filter (where o.state = 'outcome_unknown' and o.step = 'review') as review,
  count(*) filter (where o.due_at is null and o.state = 'pending') as parked,
  (extract(epoch from statement_timestamp() - min(o.due_at) filter (
    where o.state in ('pending', 'retryable_failure') and o.due_at <= statement_timestamp())) * 1000000)::bigint
    as oldest_due,
  (extract(epoch from statement_timestamp() - min(o.doubt_since)) * 1000000)::bigint as oldest_unknown,
  (select count(*) from due) < $1 and (select count(*) from held) < $1 and (select count(*) from arrived) < $1 as all_counted
from (select * from due union all select * from held union all select * from arrived) o
group by o.operation
order by o.operation
