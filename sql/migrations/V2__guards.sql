-- What must never happen to a row, refused by the database itself, whoever asks.
-- AFTER … WHEN: the executor evaluates the condition and calls the function only to refuse. A BEFORE trigger would
-- cost a tuple lock and its WAL on every settle; a CHECK cannot see the old row.

create function outbox.refuse() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  raise exception '% on outbox.% is refused: %', lower(tg_op), tg_table_name, tg_argv[0] using errcode = 'OB412';
end $$;

create trigger action_is_immutable before update or truncate on outbox.action
  for each statement execute function outbox.refuse('the intent is immutable; changed content is a new action');

create trigger attempt_is_append_only before update or truncate on outbox.attempt
  for each statement execute function outbox.refuse('history is append-only');

-- The edges of the state machine. outcome_unknown may be left for anything: by evidence or by a recorded decision.
create trigger delivery_edge after update on outbox.delivery for each row
  when (old.state <> new.state and (old.state || '>' || new.state) <> all (array[
    'pending>dispatching', 'retryable_failure>dispatching', 'outcome_unknown>dispatching',
    'dispatching>pending', 'dispatching>succeeded', 'dispatching>retryable_failure',
    'dispatching>terminal_failure', 'dispatching>outcome_unknown',
    'outcome_unknown>pending', 'outcome_unknown>retryable_failure',
    'outcome_unknown>succeeded', 'outcome_unknown>terminal_failure',
    -- late testimony about a row that nobody holds
    'pending>succeeded', 'retryable_failure>succeeded', 'pending>outcome_unknown', 'retryable_failure>outcome_unknown',
    -- an operator's recorded decision
    'terminal_failure>pending']))
  execute function outbox.refuse('the state machine has no such edge');

create trigger delivery_fence after update on outbox.delivery for each row
  when (new.fence < old.fence
    or (new.state = 'dispatching' and old.state <> 'dispatching' and new.fence <> old.fence + 1))
  execute function outbox.refuse('a fence never falls, and every claim adds one');

create trigger delivery_closed_stays after update on outbox.delivery for each row
  when (old.closed_at is not null
    and not (old.state = 'terminal_failure' and new.state = 'pending' and new.fence = old.fence))
  execute function outbox.refuse('a closed row never changes');

create trigger delivery_is_that_of_its_action after update on outbox.delivery for each row
  when (new.action_id <> old.action_id or new.operation <> old.operation or new.tenant <> old.tenant)
  execute function outbox.refuse('an identity never changes');
