-- Stopping what has been committed: one action (cancel) or an authority (revoke, restore).

-- Requests that an action is not sent any more. Returns `cancelled` where that is certain: nobody holds it and
-- nothing is in doubt; `requested` where a worker holds it or an earlier attempt may have taken effect. OB412 where it
-- is closed. Never waits for a row in flight.
create function outbox.cancel(action_id uuid, by text, reason text) returns text
language plpgsql volatile security definer set search_path = pg_catalog, outbox, pg_temp as $$
#variable_conflict use_column
declare
  v_state text;
begin
  if coalesce(cancel.by, '') = '' or coalesce(cancel.reason, '') = '' then
    raise exception 'cancel needs who (by) and why (reason)' using errcode = 'OB422';
  end if;
  select d.state into v_state from outbox.delivery d where d.action_id = cancel.action_id;
  if not found then
    raise exception 'there is no action %', cancel.action_id using errcode = 'OB412';
  elsif v_state in ('succeeded', 'terminal_failure') then
    raise exception 'action % is closed as %', cancel.action_id, v_state using errcode = 'OB412';
  end if;
  insert into outbox.cancellation (action_id, requested_by, reason)
    values (cancel.action_id, cancel.by, cancel.reason) on conflict do nothing;
  -- `conclude` is what makes it certain: a claim that looks for cancellations with an older snapshot reads this row
  -- anew when it locks it, and doesn't send.
  update outbox.delivery d set step = 'conclude', due_at = least(d.due_at, clock_timestamp()), updated_at = clock_timestamp()
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
  if coalesce(revoke.by, '') = '' or coalesce(revoke.reason, '') = '' then
    raise exception 'revoke needs who (by) and why (reason)' using errcode = 'OB422';
  elsif coalesce(revoke.tenant, revoke.principal, revoke.operation, revoke.authority) is null then
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
  if coalesce(restore.by, '') = '' or coalesce(restore.reason, '') = '' then
    raise exception 'restore needs who (by) and why (reason)' using errcode = 'OB422';
  elsif not exists (select from outbox.revocation r where r.revocation = restore.revocation) then
    raise exception 'there is no revocation %', restore.revocation using errcode = 'OB412';
  end if;
  update outbox.revocation r
    set lifted_at = clock_timestamp(), lifted_by = restore.by, lifted_reason = restore.reason
    where r.revocation = restore.revocation and r.lifted_at is null;
  return found;
end $$;
