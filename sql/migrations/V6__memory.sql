-- What is left of an action when its payload is no longer kept (R5): its identity and its end, so that a repeated
-- enqueue still finds the first. When that is forgotten too, the operation remembers how far back it has forgotten.

-- Prunes one batch: at most 1,000 closed actions, and at most 1,000 tombstones. Of each operation, what was closed
-- longer ago than `payload` leaves a tombstone, and one closed longer ago than `identity` is forgotten. To be called
-- in a transaction of its own until it has nothing to do; `busy` where another session prunes just now.
-- What stays, however old: an open action; one that an open compensation points to; one that was closed as not
-- delivered and confirmed afterwards, until a person has decided about it; one that holds its serial queue; what
-- somebody has locked.
-- Index: delivery_closed and tombstone_closed, read from their left edge.
create function outbox.prune(operations text[], payload interval[], identity interval[])
returns table (actions bigint, tombstones bigint, busy boolean)
language plpgsql volatile security definer
set search_path = pg_catalog, outbox, pg_temp set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_ids        uuid[];
  v_actions    bigint := 0;
  v_tombstones bigint := 0;
begin
  if not pg_try_advisory_xact_lock(7813402954201167433) then
    return query select 0::bigint, 0::bigint, true;
    return;
  end if;

  -- `(select …) is null` rather than `not exists`: a probe for each row, where a join might read all the open rows.
  -- Locked first, and looked at again by the next statement: whatever was committed meanwhile is seen there. The
  -- actions as well as the deliveries, since an enqueue holds what it compensates.
  select array_agg(p.action_id) into v_ids from (
    select c.action_id from unnest(operations, payload) as k(operation, keep) cross join lateral (
      select d.action_id from outbox.delivery d join outbox.action a using (action_id)
      where d.operation = k.operation and d.closed_at < statement_timestamp() - k.keep and not d.turn
        and (d.state = 'succeeded' or (select true from outbox.attempt h
            where h.action_id = d.action_id and h.kind = 'late' and h.verdict = 'contradicts' limit 1) is null
          or outbox.took_effect(d.action_id) is not null)
        and (select true from outbox.action c join outbox.delivery o using (action_id)
          where c.compensates = d.action_id and o.closed_at is null limit 1) is null
      order by d.closed_at limit 1000 for update of d, a skip locked) c
    limit 1000) p;
  if v_ids is not null then
    with known as materialized (
      select d.action_id, d.receipt, d.closed_at,
        case when d.state = 'succeeded' then true else outbox.took_effect(d.action_id) end as took_effect
      from outbox.delivery d
      where d.action_id = any (v_ids)
        and (select true from outbox.action c join outbox.delivery o using (action_id)
          where c.compensates = d.action_id and o.closed_at is null limit 1) is null
    ), old as materialized (
      select k.*, case when k.took_effect then 'succeeded' else 'terminal_failure' end as state
      from known k where k.took_effect is not null
    ), history as (
      delete from outbox.attempt h using old where h.action_id = old.action_id
    ), cancelled as (
      delete from outbox.cancellation c using old where c.action_id = old.action_id
    ), stood as (
      delete from outbox.delivery d using old where d.action_id = old.action_id
    ), intended as (
      delete from outbox.action a using old where a.action_id = old.action_id
      returning a.action_id, a.tenant, a.principal, a.operation, a.retry_key, a.input_hash, old.state, old.receipt,
        a.created_at, old.closed_at
    )
    insert into outbox.tombstone (action_id, tenant, principal, operation, retry_key, input_hash, state, receipt, created_at, closed_at)
    select i.* from intended i;
    get diagnostics v_actions = row_count;
  end if;

  select array_agg(p.action_id) into v_ids from (
    select c.action_id from unnest(operations, identity) as k(operation, keep) cross join lateral (
      select t.action_id from outbox.tombstone t
      where t.operation = k.operation and t.closed_at < statement_timestamp() - k.keep
        and (select true from outbox.action c join outbox.delivery o using (action_id)
          where c.compensates = t.action_id and o.closed_at is null limit 1) is null
      order by t.closed_at limit 1000 for update skip locked) c
    limit 1000) p;
  if v_ids is not null then
    with gone as (
      delete from outbox.tombstone t
      where t.action_id = any (v_ids)
        and (select true from outbox.action c join outbox.delivery o using (action_id)
          where c.compensates = t.action_id and o.closed_at is null limit 1) is null
      returning t.operation, t.created_at
    ), forgotten as (
      insert into outbox.operation as o (operation, forgets_before)
      select g.operation, max(g.created_at) from gone g group by g.operation
      on conflict (operation) do update set forgets_before = greatest(o.forgets_before, excluded.forgets_before)
    )
    select count(*) into v_tombstones from gone;
  end if;
  return query select v_actions, v_tombstones, false;
end $$;
