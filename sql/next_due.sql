-- How long until something is due that this daemon could claim.
--
-- $1 text[] operations
-- Rows: one; null where nothing waits. Index: delivery_due, one probe per operation and tenant, at most 256 each, of
-- rows that send and of rows that ask.
with recursive walk(operation, asks, tenant, due_at, looked) as (
  select w.operation, w.asks, t.tenant, t.due_at, 1
  from (select o.operation, a.asks from unnest($1::text[]) as o(operation) cross join (values (false), (true)) as a(asks)) w
  cross join lateral (
    select d.tenant, d.due_at from outbox.delivery d
    where d.operation = w.operation and d.asks = w.asks and d.due_at is not null and (d.lane is null or d.turn)
    order by d.operation, d.asks, d.tenant, d.due_at limit 1) t
  union all
  select k.operation, k.asks, t.tenant, t.due_at, k.looked + 1
  from walk k cross join lateral (
    select d.tenant, d.due_at from outbox.delivery d
    where d.operation = k.operation and d.asks = k.asks and d.tenant > k.tenant
      and d.due_at is not null and (d.lane is null or d.turn)
    order by d.operation, d.asks, d.tenant, d.due_at limit 1) t
  where k.looked < 256
)
select (extract(epoch from min(due_at) - clock_timestamp()) * 1000000)::bigint as due_in from walk
