-- How long until something is due that this daemon could claim.
--
-- $1 text[] operations, $2 boolean[] of each: whether its rows that ask are meant, or those that send; $3 timestamptz[]
-- rows that have been due since before this are not looked at (see claim.sql)
-- Rows: one; null where nothing waits. Index: delivery_due, one probe per pair and tenant, at most 256
-- each; delivery_unplaced, one probe: what outbox.promote has to see to is due at once.
with recursive walk(operation, asks, since, tenant, due_at, looked) as (
  select w.operation, w.asks, w.since, t.tenant, t.due_at, 1
  from unnest($1::text[], $2::boolean[], $3::timestamptz[]) as w(operation, asks, since)
  cross join lateral (
    select d.tenant, d.due_at from outbox.delivery d
    where d.operation = w.operation and d.asks = w.asks and d.due_at >= w.since and d.due_at is not null and (d.lane is null or d.turn)
    order by d.operation, d.asks, d.tenant, d.due_at limit 1) t
  union all
  select k.operation, k.asks, k.since, t.tenant, t.due_at, k.looked + 1
  from walk k cross join lateral (
    select d.tenant, d.due_at from outbox.delivery d
    where d.operation = k.operation and d.asks = k.asks and d.tenant > k.tenant and d.due_at >= k.since
      and d.due_at is not null and (d.lane is null or d.turn)
    order by d.operation, d.asks, d.tenant, d.due_at limit 1) t
  where k.looked < 256
)
select case when (select true from outbox.delivery d
    where d.lane is not null and (not d.turn and d.due_at is not null or d.turn and d.closed_at is not null and not d.holds)
    order by d.place limit 1) is not null then 0
  else (extract(epoch from min(due_at) - clock_timestamp()) * 1000000)::bigint end as due_in from walk
