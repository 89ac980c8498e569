-- What the ledger knows of the daemons, and how much was delivered lately.
--
-- $1 text[] operations whose deliveries are counted, $2 bigint the most closed rows that are counted of each
-- Rows: one. `workers` have a lease that has not ended; a daemon with nothing to do has none. `delivered` counts
-- successes of the last minute. Index: delivery_due; delivery_closed from its young end.
select clock_timestamp() as now,
  (select count(distinct d.worker) from outbox.delivery d
    where d.due_at > statement_timestamp() and (d.lane is null or d.turn) and d.state = 'dispatching') as workers,
  (select count(*) from unnest($1::text[]) as w(operation) cross join lateral (
    select d.state from outbox.delivery d
    where d.operation = w.operation and d.closed_at > statement_timestamp() - interval '1 minute' limit $2) d
    where d.state = 'succeeded') as delivered
