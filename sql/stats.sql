-- Counts of open rows, for the stats line. Reads no closed row.
--
-- $1 bigint the most rows that are counted of each index, so that a large backlog costs a bounded time
-- Rows: one. Index: delivery_due, and of delivery_held what is held: rows that wait in a serial queue are none of these.
with open as (
  (select d.state, d.step, d.due_at, d.doubt_since from outbox.delivery d
    where d.due_at is not null and (d.lane is null or d.turn) limit $1)
  union all
  (select d.state, d.step, d.due_at, d.doubt_since from outbox.delivery d
    where d.due_at is null and d.closed_at is null and d.step = 'review' limit $1)
)
select
  count(*) filter (where state = 'pending' and due_at <= statement_timestamp()) as due,
  count(*) filter (where state = 'pending' and due_at > statement_timestamp()) as scheduled,
  count(*) filter (where state = 'retryable_failure') as retrying,
  count(*) filter (where state = 'dispatching') as in_flight,
  count(*) filter (where state = 'outcome_unknown') as unknown,
  count(*) filter (where step = 'review') as review,
  coalesce(extract(epoch from statement_timestamp() - min(due_at) filter (
    where state <> 'dispatching' and due_at <= statement_timestamp())) * 1000, 0)::bigint as oldest_due_ms,
  coalesce(extract(epoch from statement_timestamp() - min(doubt_since)) * 1000, 0)::bigint as oldest_unknown_ms
from open
