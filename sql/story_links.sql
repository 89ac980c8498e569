-- What an action compensates, and what compensates it. Either may have been pruned.
--
-- $1 uuid action, $2 uuid what it compensates, or null
-- Rows: at most 101. Index: primary keys; action_compensates.
select l.compensates, l.action_id, coalesce(a.operation, t.operation) as operation,
  coalesce(outbox.label(d.state, d.step), t.state) as label, coalesce(d.receipt, t.receipt) as receipt,
  outbox.took_effect(l.action_id) as took_effect
from (
  select true as compensates, $2::uuid as action_id where $2::uuid is not null
  union all
  (select false, c.action_id from outbox.action c where c.compensates = $1::uuid order by c.action_id limit 100)
) l
left join outbox.action a using (action_id)
left join outbox.delivery d using (action_id)
left join outbox.tombstone t using (action_id)
order by l.compensates desc, l.action_id
