-- Claims due rows, of all operations at once, each within its own free slots.
--
-- Arrays of one length, one element a want: an operation, and which of its rows.
-- $1 text[]    operation
-- $2 boolean[] false: rows that send or conclude; true: rows that ask the destination (step lookup or cancel)
-- $3 int[]     free slots; none is claimed that can't be worked on now
-- $4 bigint[]  lease, microseconds: the timeout and the lease margin
-- $5 text[]    the tenant where the walk starts ('' = the first)
-- $6 bytea[]   pins: what sends are bound to
-- $7 boolean[] whether sends are marked (the operation can neither resend nor ask)
-- $8 text      worker
-- $9 bytea     8 random bytes, the claim's mark: all attempt ids of this claim begin with it, and those of no other claim
-- $10 int[]    of each want: the most that one tenant may have at once, null = no such bound
-- $11 text[], $12 boolean[], $13 text[], $14 int[] what tenants have of bounded wants now: operation, which of its rows,
--              tenant, how many
-- $15 bigint   a body of so many bytes at most is small and goes in any case
-- $16 bigint   bytes of larger ones that may go now. The oldest go, as long as those before them are less than this: one
--              always goes where there is any room, so that the largest doesn't wait for ever
-- $17 bigint   the most bytes that a body may have to be sent
-- $18 timestamptz[] rows that have been due since before this are not looked at; -infinity: all are. Under a snapshot that
--              somebody holds open the index's left edge fills with dead entries, which every claim would step over anew
--
-- Rows: one per claimed action; for a want that claimed nothing one with a null action_id. `next_after` goes into $5
-- of the next claim. `put_off` rows were due and are not any more; `heavy`: some are due and wait for room. `oversize` is
-- the length of a body that is too large to be sent, and not read. `oldest`: since when the oldest due row of those that
-- the walk has met has been due. `unplaced`: in some serial queue a turn is to be given, or one that has arrived to be
-- parked (outbox.promote); one probe of a mostly empty index.
-- Index: delivery_due, walked tenant by tenant (one probe each, at most 256), so that no tenant waits for another's
-- backlog. statement_timestamp() bounds the index scan; clock_timestamp() would be a filter over every later row.
-- Race won: SKIP LOCKED never waits; what another claim has taken is no longer due when its lock is gone.
--
-- A compensation whose original may or may not have taken effect is put off, not claimed; one whose original did not
-- happen is claimed with that stop.
--
-- A lapsed send is doubt from this moment on: the claim itself counts it, names it, writes its history and turns the
-- step into `conclude`, so that a crash of this worker cannot lose it.
with recursive want as materialized (
  select w.* from unnest($1::text[], $2::boolean[], $3::int[], $4::bigint[], $5::text[], $6::bytea[], $7::boolean[],
      $10::int[], $18::timestamptz[])
    as w(operation, asks, free, lease, after, pins, marks, tenant_max, since)
  where w.free > 0
), walk(operation, asks, free, since, tenant, due_at, looked, found) as (
  select w.operation, w.asks, w.free, w.since, t.tenant, t.due_at, 1, (t.due_at <= statement_timestamp())::int
  from want w cross join lateral (
    select d.tenant, d.due_at from outbox.delivery d
    where d.operation = w.operation and d.asks = w.asks and d.tenant >= w.after and d.due_at >= w.since
      and d.due_at is not null and (d.lane is null or d.turn)
    order by d.operation, d.asks, d.tenant, d.due_at limit 1) t
  union all
  select k.operation, k.asks, k.free, k.since, t.tenant, t.due_at, k.looked + 1, k.found + (t.due_at <= statement_timestamp())::int
  from walk k cross join lateral (
    select d.tenant, d.due_at from outbox.delivery d
    where d.operation = k.operation and d.asks = k.asks and d.tenant > k.tenant and d.due_at >= k.since
      and d.due_at is not null and (d.lane is null or d.turn)
    order by d.operation, d.asks, d.tenant, d.due_at limit 1) t
  where k.found < k.free and k.looked < 256
), ends as materialized (
  select w.operation, w.asks, w.free, w.lease * interval '1 microsecond' as lease, w.pins, w.marks, w.tenant_max, w.since,
    min(k.due_at) filter (where k.due_at <= statement_timestamp()) as oldest, max(k.found) as found,
    case when max(k.found) >= w.free or max(k.looked) >= 256 then max(k.tenant) || E'\x01' else '' end as next_after
  from want w left join walk k using (operation, asks)
  group by w.operation, w.asks, w.free, w.lease, w.pins, w.marks, w.tenant_max, w.since
), pick as materialized (
  select p.*, e.operation, e.asks, e.lease, e.pins, e.marks
  from walk k join ends e using (operation, asks) cross join lateral (
    select d.ctid as at, d.action_id, d.state, d.step, d.due_at, d.fence, d.attempt_id, d.attempts, d.worker,
      d.first_sent_at, d.last_sent_at, d.doubt_since, d.proof, d.override, d.reason, d.updated_at
    from outbox.delivery d
    where d.operation = k.operation and d.asks = k.asks and d.tenant = k.tenant and d.due_at <= statement_timestamp()
      and d.due_at >= e.since
      and d.due_at is not null and (d.lane is null or d.turn)
    order by d.due_at limit case when e.tenant_max is null then e.free / e.found else (
        select greatest(0, least(e.free / e.found, e.tenant_max - coalesce(max(b.used), 0)))
        from unnest($11::text[], $12::boolean[], $13::text[], $14::int[]) as b(operation, asks, tenant, used)
        where b.operation = k.operation and b.asks = k.asks and b.tenant = k.tenant) end for update of d skip locked) p
  where k.due_at <= statement_timestamp()
  limit 4096 -- a literal bound, for the planner's estimate
), told as materialized (
  select p.*, coalesce(s.stop, case when not s.original then 'nothing_to_compensate' end) as stop, a.created_at, a.traceparent, a.params, a.headers, a.content_type, a.body,
    case when octet_length(a.body) > $15::bigint then octet_length(a.body) end as large, -- known without reading the body
    case
      when p.proof is not null then 'conclude'
      -- It may have been sent: its claim or its mark has dated it to the end of the lease. Asked of the row, since the
      -- configuration may not be the one it was claimed under.
      when p.state = 'dispatching' and p.step = 'send' and p.last_sent_at >= p.due_at then 'lapsed'
      when p.step in ('send', 'conclude') and (s.stop is not null or not s.original) and not p.override then 'conclude'
      when p.step = 'send' and s.original is null and p.state in ('pending', 'retryable_failure') then 'wait'
      else p.step
    end as now
  from pick p
  join outbox.action a using (action_id)
  cross join lateral (
    select case
      when exists (select from outbox.cancellation c where c.action_id = a.action_id) then 'cancelled'
      when a.expires_at <= statement_timestamp() then 'deadline'
      -- the first is asked once a claim, and mostly there is none
      when exists (select from outbox.revocation r where r.lifted_at is null) and exists (
        select from outbox.revocation r
        where r.lifted_at is null
          and (r.tenant is null or r.tenant = a.tenant) and (r.principal is null or r.principal = a.principal)
          and (r.operation is null or r.operation = a.operation) and (r.authority is null or r.authority = a.authority)
      ) then 'authority_revoked'
      -- a stop that was seen while in doubt holds, whatever has been lifted since; also when late evidence has cleared
      -- the doubt (in no other way does an open row come by such a reason)
      when p.reason in ('cancelled', 'deadline', 'authority_revoked') then p.reason
    end as stop,
    -- Before anything of a compensation is sent: whether what it compensates took effect; null = not known yet.
    case when a.compensates is null or p.doubt_since is not null or p.override then true
      else outbox.took_effect(a.compensates) end as original
    offset 0) s -- offset 0: worked out once a row
), waits as (
  -- Looked at again soon, the longer it waits the later, and without a claim: no fence, no attempt, and its time has
  -- not begun.
  update outbox.delivery d set due_at = w.until, budget_from = w.until, updated_at = statement_timestamp()
  from (
    select t.at, statement_timestamp()
      + least(greatest((statement_timestamp() - t.created_at) / 8, interval '5 s'), interval '1 min') as until
    from told t where t.now = 'wait') w
  where d.ctid = w.at
), waited as (
  select t.operation, t.asks, count(*)::int as put_off from told t where t.now = 'wait' group by t.operation, t.asks
), bulky as materialized (
  select l.at, case when l.oversize then l.large end as oversize, coalesce(l.ahead, 0) >= $16::bigint and not l.oversize as heavy
  from (
    select o.*, sum(case when not o.oversize then o.large end)
      over (order by o.due_at rows between unbounded preceding and 1 preceding) as ahead
    from (
      -- In doubt it has been sent before, and may be needed to ask about it.
      select t.at, t.due_at, t.large, t.large > $17::bigint and t.now = 'send' and t.doubt_since is null as oversize
      from told t where t.large is not null and t.now in ('send', 'lookup', 'cancel')) o) l
), claimed as (
  update outbox.delivery d set
    state = 'dispatching',
    step = case t.now when 'lapsed' then 'conclude' else t.now end,
    fence = d.fence + 1,
    attempt_id = encode($9::bytea || substring(uuid_send(t.action_id), 9), 'hex')::uuid, -- an action is claimed once under a mark
    worker = $8,
    due_at = statement_timestamp() + t.lease,
    attempts = d.attempts + (t.now = 'lapsed')::int,
    doubt_since = case when t.now = 'lapsed' then coalesce(d.doubt_since, clock_timestamp()) else d.doubt_since end,
    doubt_attempt = case
      when t.now <> 'lapsed' then d.doubt_attempt
      when d.doubt_since is null or d.doubt_attempt = d.attempt_id then d.attempt_id end,
    sent_digest = case
      when t.now <> 'send' then d.sent_digest
      when d.doubt_since is null then t.pins
      when d.override and d.sent_digest is distinct from t.pins then ''::bytea -- equal to no pins
      else d.sent_digest end,
    first_sent_at = case when t.now = 'send' and not t.marks then coalesce(d.first_sent_at, statement_timestamp()) else d.first_sent_at end,
    last_sent_at = case when t.now = 'send' and not t.marks then greatest(d.last_sent_at, statement_timestamp() + t.lease) else d.last_sent_at end,
    marked_at = case when t.now = 'send' then null else d.marked_at end,
    override = d.override and t.now <> 'send',
    updated_at = statement_timestamp()
  from told t left join bulky b using (at)
  -- By its place: the row is locked, so that is where it is. A version that is younger than this statement's snapshot
  -- is not claimed; it is still due.
  where d.ctid = at and t.now <> 'wait' and b.heavy is not true
  returning t.asks, d.action_id, d.operation, d.tenant, d.fence, d.attempt_id, d.step, d.attempts, d.budget_from,
    t.first_sent_at as first_before, t.last_sent_at as last_before, d.doubt_since, d.doubt_attempt, d.proof,
    d.cancel_sent_at is not null as cancel_sent, t.override and t.now = 'send' as overridden, d.sent_digest, t.stop,
    t.created_at, t.traceparent, t.params, t.headers, t.content_type, d.lane,
    b.oversize, case when b.oversize is null and t.now in ('send', 'lookup', 'cancel') then t.body end as body
), lapse as (
  insert into outbox.attempt (attempt_id, action_id, number, kind, fence, worker, started_at, deadline_at, finished_at, evidence, verdict)
  select t.attempt_id, t.action_id, t.attempts + 1, 'send', t.fence, t.worker, t.updated_at, t.due_at, clock_timestamp(), 'lapsed', 'outcome_unknown'
  from told t
  -- also where a proof of an earlier send waits in the row and concludes it: this one was sent, too
  where (t.now = 'lapsed'
      or t.proof is not null and t.state = 'dispatching' and t.step = 'send' and t.last_sent_at >= t.due_at)
    -- what is not claimed is still whose it was, and that one writes what came of it
    and t.action_id in (select c.action_id from claimed c)
  on conflict do nothing
)
select e.operation as wanted, e.asks as asked, e.next_after, e.oldest, coalesce(w.put_off, 0) as put_off,
  exists (select from bulky b where b.heavy) as heavy,
  (select true from outbox.delivery d
    where d.lane is not null and (not d.turn and d.due_at is not null or d.turn and d.closed_at is not null and not d.holds)
    order by d.place limit 1) is not null as unplaced,
  statement_timestamp() as claimed_at, c.*
from ends e left join waited w using (operation, asks) left join claimed c using (operation, asks)
