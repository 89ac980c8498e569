-- What must never happen to a row, refused by the database itself, whoever asks.
-- AFTER … WHEN: the executor evaluates the condition, and calls the function only where it may have to refuse. A BEFORE
-- trigger would cost a tuple lock and its WAL on every settle; a CHECK cannot see the old row.

create function outbox.refuse() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception '% on outbox.% is refused: %', lower(tg_op), tg_table_name, tg_argv[0] using errcode = 'OB412';
end $$;

create trigger action_is_immutable before update or truncate on outbox.action
  for each statement execute function outbox.refuse('the intent is immutable; changed content is a new action');

create trigger attempt_is_append_only before update or truncate on outbox.attempt
  for each statement execute function outbox.refuse('history is append-only');

-- The state machine: its edges, fences, and that what is closed stays closed. One trigger with one condition, and a
-- short one, since every statement that updates rows pays for reading each condition anew: what a closed row may still
-- become is for the function to say, which claims and settles never call. dispatching may be left for anything, and so may
-- outcome_unknown: by evidence or by a recorded decision.
create function outbox.refuse_delivery() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
  v_why constant text := case
    when new.action_id <> old.action_id or new.operation <> old.operation or new.tenant <> old.tenant
      then 'an identity never changes'
    when old.closed_at is null then case
      when new.fence < old.fence or new.state = 'dispatching' then 'a fence never falls, and every claim adds one'
      else format('the state machine has no edge from %s to %s', old.state, new.state) end
    -- An operator's decision to try again.
    when old.state = 'terminal_failure' and new.state = 'pending' and new.fence = old.fence then null
    -- The turn in a serial queue, which it gives back.
    when old.turn and new.turn::int + new.holds::int < 1 + old.holds::int and new.state = old.state
      and new.fence = old.fence and new.closed_at = old.closed_at and new.lane = old.lane and new.attempts = old.attempts
      and new.reason is not distinct from old.reason and new.receipt is not distinct from old.receipt then null
    else 'a closed row never changes' end;
begin
  if v_why is not null then
    raise exception 'update on outbox.delivery is refused: %', v_why using errcode = 'OB412';
  end if;
  return null;
end $$;

create trigger delivery_guard after update on outbox.delivery for each row
  when (
    old.closed_at is not null
    or new.fence < old.fence
    or new.action_id <> old.action_id or new.operation <> old.operation or new.tenant <> old.tenant
    or old.state <> new.state and (
      new.state = 'dispatching' and new.fence <> old.fence + 1
      or old.state in ('pending', 'retryable_failure')
        -- the two last: late testimony about a row that nobody holds
        and new.state not in ('dispatching', 'succeeded', 'outcome_unknown')))
  execute function outbox.refuse_delivery();
