-- Counts what is older than it is kept: what outbox.prune would remove, and what it leaves alone all the same.
--
-- $1 text[]   operations
-- $2 bigint[] of each, how long the payload of a closed action is kept, microseconds
-- $3 bigint[] of each, how long its identity is remembered, microseconds; both count from when it was closed
-- $4 bigint   the most rows that are counted of each operation, so that a long neglect costs a bounded time
-- Rows: one. Index: delivery_closed and tombstone_closed.
with old as (
  select o.stays from unnest($1::text[], $2::bigint[]) as k(operation, keep) cross join lateral (
    select d.turn or not (d.state = 'succeeded' or outbox.took_effect(d.action_id) is not null)
      or (select true from outbox.action c join outbox.delivery o using (action_id)
        where c.compensates = d.action_id and o.closed_at is null limit 1) is not null as stays
    from outbox.delivery d
    where d.operation = k.operation and d.closed_at < statement_timestamp() - k.keep * interval '1 microsecond'
    order by d.closed_at limit $4) o
), older as (
  select o.stays from unnest($1::text[], $3::bigint[]) as k(operation, keep) cross join lateral (
    select (select true from outbox.action c join outbox.delivery o using (action_id)
        where c.compensates = t.action_id and o.closed_at is null limit 1) is not null as stays
    from outbox.tombstone t
    where t.operation = k.operation and t.closed_at < statement_timestamp() - k.keep * interval '1 microsecond'
    order by t.closed_at limit $4) o
)
select (select count(*) from old where not stays) as actions, (select count(*) from older where not stays) as tombstones,
  (select count(*) from old where stays) + (select count(*) from older where stays) as kept
