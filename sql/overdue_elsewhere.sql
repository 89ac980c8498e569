-- Operations whose actions have been due for long, and which this daemon doesn't have: perhaps nobody does.
--
-- $1 text[] the operations of this daemon, $2 bigint for how long, microseconds
-- Rows: one per operation. Index: delivery_due, one probe per operation (a loose scan, at most 1,000), and of each that is
-- not ours its first 1,000 rows that send, each tenant's oldest first. Held and leased rows are not overdue.
with recursive known(operation, looked) as (
  select d.operation, 1 from (
    select d.operation from outbox.delivery d
    where d.due_at is not null and (d.lane is null or d.turn) order by d.operation limit 1) d
  union all
  select n.operation, k.looked + 1
  from known k cross join lateral (
    select d.operation from outbox.delivery d
    where d.operation > k.operation and d.due_at is not null and (d.lane is null or d.turn)
    order by d.operation limit 1) n
  where k.looked < 1000
)
select k.operation from known k
where k.operation <> all ($1::text[]) and exists (
  select from (
    select d.due_at, d.state from outbox.delivery d
    where d.operation = k.operation and not d.asks and d.due_at is not null and (d.lane is null or d.turn)
    order by d.operation, d.asks, d.tenant, d.due_at limit 1000) d
  where d.due_at < statement_timestamp() - $2::bigint * interval '1 microsecond' and d.state <> 'dispatching')
order by k.operation
