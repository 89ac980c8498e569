-- Serial queues in which somebody waits for what does not come to its end: the action that has the turn is unknown, is
-- tried again later, waits for its time, has been due for a minute, or has failed and holds the queue.
--
-- $1 bigint the most turns that are looked at, $2 bigint the most rows
-- $3 bigint the most that are counted behind each, so that a long queue costs a bounded time
-- Rows: the longest first. `since`: when it was closed, became unknown, or got its turn. Index: one_turn_per_lane, and
-- delivery_waiting for those that wait.
with head as materialized (
  select d.* from outbox.delivery d where d.turn order by d.lane limit $1
), held as materialized (
  select h.*, w.waiting from head h cross join lateral (
    select count(*) as waiting from (
      select from outbox.delivery d
      where d.lane = h.lane and d.lane is not null and not d.turn and d.closed_at is null limit $3) d) w
  where w.waiting > 0 and (h.holds or h.doubt_since is not null or h.state = 'retryable_failure'
    or h.state = 'pending' and (h.reason is not null or h.due_at not between statement_timestamp() - interval '1 min' and statement_timestamp()))
), longest as materialized (
  select h.*, coalesce(h.closed_at, h.doubt_since, least(h.budget_from, h.updated_at)) as since from held h
  order by coalesce(h.closed_at, h.doubt_since, least(h.budget_from, h.updated_at)) limit $2
)
select h.action_id, h.operation, h.tenant, a.ordering_key, outbox.label(h.state, h.step) as label, h.reason, h.due_at,
  h.holds, h.since, h.waiting
from longest h join outbox.action a using (action_id)
order by h.since, h.action_id
