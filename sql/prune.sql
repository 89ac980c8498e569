-- Prunes one batch, in a transaction of its own. See outbox.prune in sql/migrations/V6__memory.sql.
--
-- $1 text[]   operations
-- $2 bigint[] of each, how long the payload of a closed action is kept, microseconds
-- $3 bigint[] of each, how long its identity is remembered, microseconds; both count from when it was closed
-- Rows: one.
select p.actions, p.tombstones, p.busy from outbox.prune($1::text[],
  array(select k.keep * interval '1 microsecond' from unnest($2::bigint[]) with ordinality as k(keep, n) order by k.n),
  array(select k.keep * interval '1 microsecond' from unnest($3::bigint[]) with ordinality as k(keep, n) order by k.n)) p
