-- Where an action stands in its serial queue, and who has the turn.
--
-- $1 uuid action, $2 bigint the most that are counted
-- Rows: one where it waits or has the turn, else none. Index: one_turn_per_lane, delivery_waiting.
select d.turn as has_turn, d.holds, h.action_id as head, outbox.label(h.state, h.step) as head_label,
  h.reason as head_reason,
  (select count(*) from (select from outbox.delivery w
    where w.lane = d.lane and w.lane is not null and not w.turn and w.closed_at is null and not d.turn
      and w.place < d.place limit $2) w) as before,
  (select count(*) from (select from outbox.delivery w
    where w.lane = d.lane and w.lane is not null and not w.turn and w.closed_at is null
      and (d.turn or w.place > d.place) limit $2) w) as behind
from outbox.delivery d left join outbox.delivery h on h.lane = d.lane and h.turn
where d.action_id = $1 and d.lane is not null and (d.turn or d.closed_at is null)
