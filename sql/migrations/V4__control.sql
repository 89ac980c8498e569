-- Stopping what has been committed: one action (cancel) or an authority (revoke, restore).

-- Whoever stops or decides something says who and why (OB422).
create function outbox.refuse_unfounded(what text, by text, reason text) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
  wrong text := case
    when coalesce(btrim(by), '') = '' or coalesce(btrim(reason), '') = '' then 'needs who (by) and why (reason)'
    when octet_length(by) > 200 then 'takes a `by` of at most 200 bytes'
    when octet_length(reason) > 4000 then 'takes a reason of at most 4000 bytes'
  end;
begin
  if wrong is not null then
    raise exception '% %', what, wrong using errcode = 'OB422';
  end if;
end $$;

-- Requests that an action is not sent any more. Returns `cancelled` where that is certain: nobody holds it and
-- nothing is in doubt; `requested` where a worker holds it or an earlier attempt may have taken effect. OB412 where it
-- is closed. Never waits for a row in flight.
create function outbox.cancel(action_id uuid, by text, reason text) returns text
language plpgsql volatile security definer set search_path = pg_catalog, outbox, pg_temp as $$
#variable_conflict use_column
declare
  v_state text;
begin
  perform outbox.refuse_unfounded('cancel', cancel.by, cancel.reason);
  select d.state into v_state from outbox.delivery d where d.action_id = cancel.action_id;
  if not found then
    raise exception 'there is no action %', cancel.action_id using errcode = 'OB412';
  elsif v_state in ('succeeded', 'terminal_failure') then
    raise exception 'action % is closed as %', cancel.action_id, v_state using errcode = 'OB412';
  end if;
  insert into outbox.cancellation (action_id, requested_by, reason)
    values (cancel.action_id, cancel.by, cancel.reason) on conflict do nothing;
  -- `conclude` is what makes it certain: a claim that looks for cancellations with an older snapshot reads this row
  -- anew when it locks it, and doesn't send. What waits in a serial queue leaves it: nothing of it is sent any more, so
  -- it needs no turn.
  update outbox.delivery d set step = 'conclude', due_at = least(d.due_at, clock_timestamp()),
      lane = case when d.turn then d.lane end, place = case when d.turn then d.place end, updated_at = clock_timestamp()
    from (select r.action_id from outbox.delivery r
            where r.action_id = cancel.action_id and r.state in ('pending', 'retryable_failure')
            for update skip locked) r
    where d.action_id = r.action_id;
  if not found then
    return 'requested';
  end if;
  if coalesce(current_setting('outbox.bell', true), '') <> 'off' then
    perform pg_notify('outbox', '');
  end if;
  return 'cancelled';
end $$;

-- Revokes authority: actions that match every given argument (null = any) are not sent any more. Returns the
-- revocation's number. Looked at in the transaction of every claim (R22).
create function outbox.revoke(
  by text, reason text, tenant text default null, principal text default null, operation text default null,
  authority text default null
) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, outbox, pg_temp as $$
declare
  v_number bigint;
begin
  perform outbox.refuse_unfounded('revoke', revoke.by, revoke.reason);
  if coalesce(revoke.tenant, revoke.principal, revoke.operation, revoke.authority) is null then
    raise exception 'revoke needs at least one of tenant, principal, operation and authority' using errcode = 'OB422';
  end if;
  insert into outbox.revocation (tenant, principal, operation, authority, revoked_by, reason)
    values (revoke.tenant, revoke.principal, revoke.operation, revoke.authority, revoke.by, revoke.reason)
    returning revocation into v_number;
  return v_number;
end $$;

-- Lifts a revocation. What it has stopped stays stopped. False where it had been lifted before.
create function outbox.restore(revocation bigint, by text, reason text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, outbox, pg_temp as $$
#variable_conflict use_column
begin
  perform outbox.refuse_unfounded('restore', restore.by, restore.reason);
  if not exists (select from outbox.revocation r where r.revocation = restore.revocation) then
    raise exception 'there is no revocation %', restore.revocation using errcode = 'OB412';
  end if;
  update outbox.revocation r
    set lifted_at = clock_timestamp(), lifted_by = restore.by, lifted_reason = restore.reason
    where r.revocation = restore.revocation and r.lifted_at is null;
  return found;
end $$;
