-- What a person decides where no evidence does (R21). Every decision stands in the history with who and why. What
-- would contradict the evidence is refused (OB412), with the reason; so is what a worker holds. None of these waits.

-- Whether an action took effect: true, false, or null = not known: open, unknown to us, or closed as not delivered,
-- confirmed by its destination afterwards, and decided upon by nobody yet.
create function outbox.took_effect(action_id uuid) returns boolean
language plpgsql stable security definer set search_path = pg_catalog, outbox, pg_temp as $$
#variable_conflict use_column
declare
  v_state     text;
  v_confirmed timestamptz;
begin
  select d.state::text into v_state from outbox.delivery d where d.action_id = took_effect.action_id;
  if not found then
    select t.state::text into v_state from outbox.tombstone t where t.action_id = took_effect.action_id;
  end if;
  if v_state is distinct from 'terminal_failure' then
    return case when v_state = 'succeeded' then true end;
  end if;
  select max(h.finished_at) into v_confirmed from outbox.attempt h
    where h.action_id = took_effect.action_id and h.kind = 'late' and h.verdict = 'contradicts';
  if v_confirmed is null then
    return false;
  end if;
  return (select h.evidence = 'happened' from outbox.attempt h
    where h.action_id = took_effect.action_id and h.kind = 'decision' and h.finished_at > v_confirmed
      and h.evidence in ('happened', 'did_not_happen')
    order by h.finished_at desc limit 1);
end $$;

-- The row that a decision is about, locked. OB412 where there is none, or where somebody else is at it just now.
create function outbox.row_to_decide(action_id uuid) returns outbox.delivery
language plpgsql volatile set search_path = pg_catalog, outbox, pg_temp as $$
#variable_conflict use_column
declare
  v_row outbox.delivery;
begin
  select d.* into v_row from outbox.delivery d where d.action_id = row_to_decide.action_id for update skip locked;
  if found then
    return v_row;
  elsif exists (select from outbox.delivery d where d.action_id = row_to_decide.action_id) then
    raise exception 'action %: a worker is at it just now; try again', row_to_decide.action_id using errcode = 'OB412';
  elsif exists (select from outbox.tombstone t where t.action_id = row_to_decide.action_id) then
    raise exception 'action %: it is closed, and only its identity is remembered', row_to_decide.action_id using errcode = 'OB412';
  end if;
  raise exception 'there is no action %', row_to_decide.action_id using errcode = 'OB412';
end $$;

-- Writes a decision into the history. Control characters would let a text from one person pose as another's.
create function outbox.write_decision(decided outbox.delivery, decision text, verdict text, by text, reason text, receipt text)
returns void language sql volatile set search_path = pg_catalog, outbox, pg_temp as $$
  insert into outbox.attempt (attempt_id, action_id, number, kind, fence, finished_at, evidence, verdict, receipt, detail, decided_by)
  values (gen_random_uuid(), decided.action_id, decided.attempts, 'decision', decided.fence, clock_timestamp(), decision,
    verdict, receipt, regexp_replace(reason, '[\u0001-\u001f\u007f]+', ' ', 'g'),
    regexp_replace(by, '[\u0001-\u001f\u007f]+', ' ', 'g')) $$;

-- A decision has made it possible again that an action takes effect, or certain that it has: what would compensate it
-- and was closed since there was nothing to compensate, waits again. One that somebody else has locked is being decided
-- upon just now; the decision about the original is refused then, to be tried again.
create function outbox.reopen_compensations(original uuid, by text) returns void
language plpgsql volatile set search_path = pg_catalog, outbox, pg_temp as $$
declare
  v_row outbox.delivery;
begin
  for v_row in
    select d.* from outbox.action a join outbox.delivery d using (action_id)
    where a.compensates = original and d.state = 'terminal_failure' and d.reason = 'nothing_to_compensate'
    order by d.action_id for update of d nowait
  loop
    update outbox.delivery d
      set state = 'pending', step = 'send', due_at = clock_timestamp(), attempts = 0, budget_from = clock_timestamp(),
        reason = null, holds = false, closed_at = null, updated_at = clock_timestamp()
      where d.action_id = v_row.action_id;
    perform outbox.write_decision(v_row, 'retry', 'pending', by, 'what it compensates may take effect after all', null);
  end loop;
end $$;

-- Decides about an action whose outcome is unknown:
--   happened        it took effect; closed as succeeded, with the receipt if there is one
--   did_not_happen  it did not; closed as terminal_failure. Refused while a request can still arrive
--   send_again      not known, and sending it once more is worth the risk: it stays in doubt, the same bytes leave once
--                   under the same key, whatever stops it otherwise. Refused once its key has been spent on a cancel
-- The first two also answer what was closed as not delivered and confirmed by its destination afterwards: what is
-- closed stays closed, but what is known of it is recorded. Returns the label of the action.
create function outbox.resolve(action_id uuid, decision text, by text, reason text, receipt text default null) returns text
language plpgsql volatile security definer
set search_path = pg_catalog, outbox, pg_temp set standard_conforming_strings = on as $$
#variable_conflict use_column
declare
  v_row   outbox.delivery;
  v_until timestamptz;
  v_wrong text;
  v_state text;
  v_rings boolean;
begin
  perform outbox.refuse_unfounded('resolve', resolve.by, resolve.reason);
  if resolve.decision is null or resolve.decision not in ('happened', 'did_not_happen', 'send_again') then
    raise exception 'a decision is happened, did_not_happen or send_again' using errcode = 'OB422';
  elsif resolve.receipt is not null and (resolve.decision <> 'happened'
      or octet_length(resolve.receipt) not between 1 and 1000 or resolve.receipt ~ '[\u0001-\u001f\u007f]') then
    raise exception 'a receipt goes with happened, and is a line of 1 to 1000 bytes' using errcode = 'OB422';
  end if;
  v_row := outbox.row_to_decide(resolve.action_id);
  select v_row.last_sent_at + coalesce((
      select o.absence from outbox.operation o where o.operation = v_row.operation), interval '0') into v_until;
  v_wrong := case
    when v_row.state = 'dispatching' then
      format('a worker holds it until %s; decide when it has written down what it learns', outbox.utc(v_row.due_at))
    when v_row.state = 'terminal_failure' and outbox.took_effect(v_row.action_id) is null then
      case when resolve.decision = 'send_again' then 'it is closed, and was confirmed afterwards; say whether it happened' end
    when v_row.state = 'terminal_failure' then 'it is closed as not delivered; retry sends it again'
    when v_row.state <> 'outcome_unknown' then format('it is %s, and only an unknown outcome is decided upon', v_row.state)
    when resolve.decision <> 'happened' and v_row.proof is not null then
      'its destination has confirmed it meanwhile, and the next claim writes that down'
    when resolve.decision = 'did_not_happen' and clock_timestamp() <= v_until then
      format('a request may still arrive, or not be seen yet, until %s', outbox.utc(v_until))
    when resolve.decision = 'send_again' and v_row.cancel_sent_at is not null then
      'a cancel by its key has been sent, so nothing can be sent under that key any more; find out what became of it'
  end;
  if v_wrong is not null then
    raise exception 'action %: %', v_row.action_id, v_wrong using errcode = 'OB412';
  end if;

  -- The next of its serial queue may go on, or it is sent itself.
  v_rings := v_row.turn or resolve.decision = 'send_again';
  if v_row.state = 'terminal_failure' then
    v_state := v_row.state;
    if v_row.holds and resolve.decision = 'happened' then
      update outbox.delivery d set holds = false where d.action_id = v_row.action_id;
    end if;
  elsif resolve.decision = 'send_again' then
    v_state := v_row.state;
    update outbox.delivery d
      set step = 'send', due_at = clock_timestamp(), override = true, reason = 'operator', updated_at = clock_timestamp()
      where d.action_id = v_row.action_id;
  else
    v_state := case resolve.decision when 'happened' then 'succeeded' else 'terminal_failure' end;
    update outbox.delivery d
      set state = v_state, step = 'conclude', due_at = null, doubt_since = null, doubt_attempt = null, proof = null,
        override = false, reason = 'operator',
        holds = d.turn and v_state = 'terminal_failure' and coalesce((
          select o.hold_on_failure from outbox.operation o where o.operation = d.operation), false),
        receipt = case when v_state = 'succeeded' then coalesce(resolve.receipt, nullif(d.proof, '')) end,
        closed_at = clock_timestamp(), updated_at = clock_timestamp()
      where d.action_id = v_row.action_id;
  end if;
  perform outbox.write_decision(v_row, resolve.decision, v_state, resolve.by, resolve.reason, resolve.receipt);
  if resolve.decision = 'happened' then
    perform outbox.reopen_compensations(v_row.action_id, resolve.by);
  end if;
  if v_rings and coalesce(current_setting('outbox.bell', true), '') <> 'off' then
    perform pg_notify('outbox', '');
  end if;
  return outbox.label(v_state, case when resolve.decision = 'send_again' then 'send' else 'conclude' end);
end $$;

-- Tries an action again that was closed as not delivered, with its attempts and its time as at the beginning. Refused
-- where it would be stopped again, where its key is spent, and where it may have taken effect after all. In a serial
-- queue it goes on where it has held it; else it waits for its turn, at the place that it had.
create function outbox.retry(action_id uuid, by text, reason text) returns text
language plpgsql volatile security definer
set search_path = pg_catalog, outbox, pg_temp set standard_conforming_strings = on as $$
#variable_conflict use_column
declare
  v_row    outbox.delivery;
  v_action outbox.action;
  v_wrong  text;
begin
  perform outbox.refuse_unfounded('retry', retry.by, retry.reason);
  v_row := outbox.row_to_decide(retry.action_id);
  select a.* into v_action from outbox.action a where a.action_id = v_row.action_id;
  v_wrong := case
    when v_row.state = 'outcome_unknown' then 'its outcome is unknown; resolve that first'
    when v_row.state <> 'terminal_failure' then format('it is %s, and only what was closed as not delivered is tried again', v_row.state)
    when v_row.cancel_sent_at is not null then
      'a cancel by its key has been sent, so nothing can be sent under that key any more; enqueue a new action'
    when outbox.took_effect(v_row.action_id) then 'it took effect, as an operator decided; enqueue a new action for another effect'
    when outbox.took_effect(v_row.action_id) is null then 'its destination confirmed it after it was closed; resolve that first'
    when exists (select from outbox.cancellation c where c.action_id = v_row.action_id) then
      'it was cancelled, and that is not taken back; enqueue a new action'
    when v_action.expires_at <= clock_timestamp() then
      format('its deadline passed at %s; enqueue a new action', outbox.utc(v_action.expires_at))
    when v_action.compensates is not null and not outbox.took_effect(v_action.compensates) then
      'what it compensates did not happen'
    else (
      select format('its authority is revoked (revocation %s); restore that first', min(r.revocation)) from outbox.revocation r
      where r.lifted_at is null
        and (r.tenant is null or r.tenant = v_action.tenant) and (r.principal is null or r.principal = v_action.principal)
        and (r.operation is null or r.operation = v_action.operation)
        and (r.authority is null or r.authority = v_action.authority)
      having count(*) > 0)
  end;
  if v_wrong is not null then
    raise exception 'action %: %', v_row.action_id, v_wrong using errcode = 'OB412';
  end if;

  update outbox.delivery d
    set state = 'pending', step = 'send', due_at = greatest(v_action.not_before, clock_timestamp()), attempts = 0,
      budget_from = greatest(v_action.not_before, clock_timestamp()), first_sent_at = null, last_sent_at = null,
      sent_digest = null, marked_at = null, reason = null, receipt = null, holds = false, closed_at = null,
      updated_at = clock_timestamp()
    where d.action_id = v_row.action_id;
  perform outbox.write_decision(v_row, 'retry', 'pending', retry.by, retry.reason, null);
  perform outbox.reopen_compensations(v_row.action_id, retry.by);
  if coalesce(current_setting('outbox.bell', true), '') <> 'off' then
    perform pg_notify('outbox', '');
  end if;
  return 'pending';
end $$;
