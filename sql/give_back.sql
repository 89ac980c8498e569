-- Gives back what a claim has taken whose answer never came: its worker has started nothing of it. As a settle does
-- that hands a claim back untouched; what the claim counted, a lapse before it, stays counted.
--
-- $1 text   worker
-- $2 uuid   the first, and
-- $3 uuid   the last attempt_id that this claim can have given
-- $4 bigint the claim was asked for so many microseconds ago at most; its leases end later than that
--
-- Rows: action_id of what was given back. None may mean that the claim is still being carried out.
-- Index: delivery_due, its entries that are not long due.
-- Race won: what another claim has taken meanwhile has another attempt_id.
--
-- What the row was before is not in the row; what is written instead is never less careful. A send that was in doubt ended
-- before the claim. An operator's send_again that nothing has used up is known from the history.
update outbox.delivery d set
  state = case when d.doubt_since is null then 'pending' else 'outcome_unknown' end,
  step = case when d.doubt_since is null then 'send' else d.step end,
  due_at = clock_timestamp(),
  worker = null,
  attempt_id = null,
  first_sent_at = case when d.doubt_since is not null then d.first_sent_at end,
  last_sent_at = case
    when d.doubt_since is null then null
    when d.step = 'send' and d.last_sent_at = d.due_at then greatest(d.first_sent_at, d.updated_at)
    else d.last_sent_at end,
  sent_digest = case when d.doubt_since is not null then d.sent_digest end,
  marked_at = case when d.doubt_since is not null then d.marked_at end,
  override = d.override or d.step = 'send' and exists (
    select from outbox.attempt h
    where h.action_id = d.action_id and h.kind = 'decision' and h.evidence = 'send_again' and not exists (
      select from outbox.attempt l
      where l.action_id = h.action_id and l.kind in ('send', 'late') and l.fence > h.fence
        and l.evidence not in ('not_sent', 'unsendable'))),
  updated_at = clock_timestamp()
where d.action_id in (
    select o.action_id from outbox.delivery o
    where o.due_at is not null and (o.lane is null or o.turn)
      and o.due_at > statement_timestamp() - $4::bigint * interval '1 microsecond'
      and o.state = 'dispatching' and o.worker = $1::text and o.attempt_id between $2::uuid and $3::uuid
    order by o.action_id for update)
  and d.state = 'dispatching' and d.worker = $1::text and d.attempt_id between $2::uuid and $3::uuid
returning d.action_id
