-- What the ledger knows of the daemons, and how much was delivered lately.
--
-- $1 bigint the most closed rows that are counted
-- Rows: one. `workers` have a lease that has not ended; a daemon with nothing to do has none. `delivered` counts
-- successes of the last minute, of the operations that a daemon has written into the inventory. Index: delivery_due;
-- delivery_closed from the young end of each operation.
select clock_timestamp() as now,
  (select count(distinct d.worker) from outbox.delivery d
    where d.due_at > statement_timestamp() and (d.lane is null or d.turn) and d.state = 'dispatching') as workers,
  (select count(*) from (
    select d.state from outbox.operation o cross join lateral (
      select d.state from outbox.delivery d
      where d.operation = o.operation and d.closed_at > statement_timestamp() - interval '1 minute' limit $1) d
    limit $1) d
    where d.state = 'succeeded') as delivered
