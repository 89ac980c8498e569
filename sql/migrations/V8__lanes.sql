-- Serial queues (R27): who has the turn.
--
-- A row of a queue is arrived, then parked or has the turn, then closed. There is one who gives turns, outbox.promote,
-- under a lock of its own that nobody else takes. Everything it has to see to is marked on the rows themselves
-- (delivery_unplaced), durably and together with what caused it: an enqueue, a settle, late proof, a decision. So it
-- does not matter who calls it, nor when, nor what crashes in between.
--
-- No deadlock: it waits for that one lock alone, and takes rows only where nobody else has them. A queue whose next row
-- is locked by somebody keeps its marks, and is seen to later.
--
-- Order: a row that was committed before another's enqueue began has a smaller place, and whoever sees the second sees
-- the first.

-- Takes the lock. False where somebody has had it for too long.
create function outbox.lock_queues() returns boolean
language plpgsql volatile set search_path = pg_catalog, outbox, pg_temp set lock_timeout = '100ms' as $$
begin
  -- Under one snapshot for the whole transaction it would not see whom the last holder of the lock gave a turn.
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'serial queues are moved on under READ COMMITTED only' using errcode = 'feature_not_supported';
  end if;
  perform pg_advisory_xact_lock(7813402954201167432);
  return true;
exception when lock_not_available then
  return false;
end $$;

-- Sees to what is marked, the oldest first and of a flood the youngest too, at most so many rows of each. Returns how many rows were changed, and how many of
-- them got their turn; nothing where there was nothing to do or somebody else is at it.
-- The turn goes to the smallest place that waits. It is taken back from one that has not begun where a smaller place
-- has arrived since: a transaction that enqueued earlier and committed later, or an action that is tried again.
-- Index: delivery_unplaced; delivery_waiting and one_turn_per_lane, one probe a queue.
create function outbox.promote(at_most int default 500) returns table (moved bigint, turns bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, outbox, pg_temp set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
#variable_conflict use_column
declare
  v_marked uuid[];
  v_lanes  bigint[];
  v_last   bigint := -1;
  v_next   uuid[];
  v_before uuid[];
  v_stuck  bigint[];
  v_keep   uuid[];
  v_turns  bigint := 0;
  v_moved  bigint := 0;
  v_count  bigint;
begin
  if not outbox.lock_queues() then
    return query select 0::bigint, 0::bigint;
    return;
  end if;

  -- Until something is done: where much of the rest is locked, it must not hold up the others.
  while v_moved = 0 loop
    -- Each statement from here on sees all that earlier holders of the lock have committed.
    select array_agg(m.action_id), array_agg(distinct m.lane), max(m.place) into v_marked, v_lanes, v_last from (
      select d.action_id, d.lane, d.place from outbox.delivery d
      where d.lane is not null and (not d.turn and d.due_at is not null or d.turn and d.closed_at is not null and not d.holds)
        and d.place > v_last
      order by d.place limit promote.at_most for update skip locked) m;
    exit when v_marked is null;
    -- Of a flood the youngest as well, so that one who has come just now is not behind it. Whatever is looked at first,
    -- the turn goes by places.
    if cardinality(v_marked) >= promote.at_most then
      select v_marked || coalesce(array_agg(m.action_id), '{}'),
          array(select distinct l.lane from unnest(v_lanes || array_agg(m.lane)) as l(lane) where l.lane is not null)
        into v_marked, v_lanes from (
          select d.action_id, d.lane from outbox.delivery d
          where d.lane is not null and (not d.turn and d.due_at is not null or d.turn and d.closed_at is not null and not d.holds)
            and d.place > v_last
          order by d.place desc limit promote.at_most for update skip locked) m;
    end if;

    -- Who gets the turn, where nobody has it, where its holder has closed, and where its holder has not begun and stands
    -- further back. A closed holder that somebody else has locked has it still.
    with line as materialized (
      select l.lane, n.action_id as next, case when h.state = 'pending' then h.action_id end as before
      from unnest(v_lanes) as l(lane)
      left join lateral (
        select d.action_id, d.state, d.place from outbox.delivery d where d.lane = l.lane and d.turn) h on true
      cross join lateral (
        select d.action_id, d.place from outbox.delivery d
        where d.lane = l.lane and d.lane is not null and not d.turn and d.closed_at is null
        order by d.lane, d.place limit 1) n
      where h.action_id is null or h.action_id = any (v_marked) or (h.state = 'pending' and n.place < h.place)
    ), next as materialized (
      select k.lane, k.next, k.before from line k join outbox.delivery d on d.action_id = k.next
      where d.lane = k.lane and not d.turn and d.closed_at is null for update of d skip locked
    ), before as materialized (
      select d.action_id from line k join outbox.delivery d on d.action_id = k.before
      where d.turn and d.state = 'pending' for update of d skip locked
    ), free as materialized (
      select n.* from next n
      where n.before is null or n.before in (select b.action_id from before b)
    )
    select array(select f.next from free f), array(select f.before from free f where f.before is not null),
        array(select k.lane from line k except select f.lane from free f)
      into v_next, v_before, v_stuck;

    -- Of a queue whose next row is locked, one mark stays.
    v_keep := array(select distinct on (d.lane) d.action_id from outbox.delivery d
      where d.action_id = any (v_marked) and d.lane = any (v_stuck) order by d.lane, d.turn desc, d.place);

    update outbox.delivery d set turn = false
      where d.action_id = any (v_marked) and d.turn and d.lane <> all (v_stuck);
    get diagnostics v_count = row_count;
    v_moved := v_moved + v_count;
    update outbox.delivery d set turn = false, due_at = null, updated_at = clock_timestamp() where d.action_id = any (v_before);
    get diagnostics v_count = row_count;
    v_moved := v_moved + v_count;
    -- Its time begins now. One that is held for a person holds its queue, too.
    update outbox.delivery d set turn = true,
        due_at = case when d.step <> 'review' then greatest(a.not_before, clock_timestamp()) end,
        budget_from = greatest(d.budget_from, clock_timestamp()), updated_at = clock_timestamp()
      from outbox.action a
      where d.action_id = any (v_next) and a.action_id = d.action_id;
    get diagnostics v_turns = row_count;
    update outbox.delivery d set due_at = null, updated_at = clock_timestamp()
      where d.action_id = any (v_marked) and not d.turn and d.closed_at is null and d.action_id <> all (v_keep);
    get diagnostics v_count = row_count;
    v_moved := v_moved + v_count + v_turns;
  end loop;

  -- As an enqueue does: only where a dispatcher sleeps.
  if v_turns > 0 and not pg_try_advisory_xact_lock_shared(7813402954201167431) then
    perform pg_notify('outbox', '');
  end if;
  return query select v_moved, v_turns;
end $$;

-- Marks queues in which somebody is parked and nobody has the turn, so that outbox.promote sees to them. There are none
-- as far as anybody knows. Looks at so many queues from `after` on; `next_after` goes on from there, null = it was the
-- last of them. Index: delivery_waiting, one probe a queue.
create function outbox.mend_queues(after bigint default null, at_most int default 10000)
returns table (mended bigint, next_after bigint)
language plpgsql volatile security definer
set search_path = pg_catalog, outbox, pg_temp set enable_seqscan = off set enable_bitmapscan = off
set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
#variable_conflict use_column
declare
  v_lanes bigint[];
  v_after bigint;
  v_count bigint;
begin
  if not outbox.lock_queues() then
    return query select 0::bigint, mend_queues.after;
    return;
  end if;
  with recursive queue(lane, looked) as (
    select d.lane, 1 from (
      select d.lane from outbox.delivery d
      where d.lane is not null and not d.turn and d.closed_at is null
        and d.lane >= coalesce(mend_queues.after, -9223372036854775808)
      order by d.lane, d.place limit 1) d
    union all
    select n.lane, k.looked + 1 from queue k cross join lateral (
      select d.lane from outbox.delivery d
      where d.lane is not null and not d.turn and d.closed_at is null and d.lane > k.lane
      order by d.lane, d.place limit 1) n
    where k.looked < mend_queues.at_most
  )
  select array_agg(k.lane) filter (where (select true from outbox.delivery h where h.lane = k.lane and h.turn) is null),
      case when count(*) >= mend_queues.at_most then max(k.lane) end
    into v_lanes, v_after from queue k;
  update outbox.delivery d set due_at = clock_timestamp(), updated_at = clock_timestamp()
    from (
      select n.action_id from unnest(v_lanes) as l(lane) cross join lateral (
        select d.action_id, d.due_at from outbox.delivery d
        where d.lane = l.lane and d.lane is not null and not d.turn and d.closed_at is null and d.step <> 'review'
        order by d.lane, d.place limit 1) n
      join outbox.delivery p on p.action_id = n.action_id
      -- one that has arrived is a mark already
      where n.due_at is null and p.due_at is null and not p.turn and p.closed_at is null
      for update of p skip locked) n
    where d.action_id = n.action_id;
  get diagnostics v_count = row_count;
  return query select v_count, v_after;
end $$;

-- Lets the next of a serial queue go on that an action holds which was closed as not delivered (hold_on_failure). What
-- is closed stays closed; the decision stands in the history. Returns `released`; OB412 where it holds nothing.
create function outbox.release(action_id uuid, by text, reason text) returns text
language plpgsql volatile security definer
set search_path = pg_catalog, outbox, pg_temp set standard_conforming_strings = on as $$
#variable_conflict use_column
declare
  v_row outbox.delivery;
begin
  perform outbox.refuse_unfounded('release', release.by, release.reason);
  v_row := outbox.row_to_decide(release.action_id);
  if not v_row.holds then
    raise exception 'action %: %', v_row.action_id, case
        when v_row.lane is null then 'it is in no serial queue'
        when v_row.closed_at is not null then 'it holds no queue'
        when not v_row.turn then 'it holds no queue; it waits for its turn itself'
        when v_row.state = 'outcome_unknown' then 'its outcome is unknown, and its queue waits for that; resolve it'
        else format('it is %s, and its queue waits for its end; to end it, cancel it', v_row.state) end
      using errcode = 'OB412';
  end if;
  update outbox.delivery d set holds = false where d.action_id = v_row.action_id;
  perform outbox.write_decision(v_row, 'release', v_row.state, release.by, release.reason, null);
  if coalesce(current_setting('outbox.bell', true), '') <> 'off' then
    perform pg_notify('outbox', '');
  end if;
  return 'released';
end $$;

create or replace function outbox.schema_version() returns int language sql immutable set search_path = pg_catalog, pg_temp as $$
  select 8 $$;

revoke all on all functions in schema outbox from public;
