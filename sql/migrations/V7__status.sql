-- What a reader may say about an action (R10). Never "failed" while it is unknown.

-- "3 s", "12 min", "5 h", "2 days"
create function outbox.ago(since timestamptz) returns text language sql stable set search_path = pg_catalog, pg_temp as $$
  select case when s < 60 then s || ' s' when s < 3600 then s / 60 || ' min' when s < 172800 then s / 3600 || ' h'
    else s / 86400 || ' days' end
  from (select greatest(0, floor(extract(epoch from clock_timestamp() - since)))::bigint as s) t $$;

-- "10:31 UTC" today, "2026-11-29 10:31 UTC" otherwise
create function outbox.utc(moment timestamptz) returns text language sql stable set search_path = pg_catalog, pg_temp as $$
  select to_char(moment at time zone 'UTC',
    case when (moment at time zone 'UTC')::date = (clock_timestamp() at time zone 'UTC')::date
      then 'HH24:MI "UTC"' else 'YYYY-MM-DD HH24:MI "UTC"' end) $$;

-- The state, or what kind of unknown it is.
create function outbox.label(state text, step text) returns text language sql immutable
set search_path = pg_catalog, pg_temp as $$
  select case when state <> 'outcome_unknown' then state
    when step = 'send' then 'awaiting_resend'
    when step = 'review' then 'awaiting_review'
    else 'awaiting_reconciliation' end $$;

-- One sentence that is true. Whatever is in doubt is said to be unknown, also while it is being sent again.
-- took_effect: as outbox.took_effect has it. awaits_original: what it compensates is not known to have happened yet.
-- holds: it holds its serial queue. behind: which action of its serial queue comes first, and how that stands.
create function outbox.sentence(
  state text, step text, doubt_since timestamptz, first_sent_at timestamptz, due_at timestamptz, reason text,
  closed_at timestamptz, is_cancelled boolean, took_effect boolean, awaits_original boolean, holds boolean, behind text
) returns text language sql stable set search_path = pg_catalog, outbox, pg_temp as $$
  select case
    when doubt_since is not null then format('Outcome unknown since %s; %s.', outbox.utc(doubt_since), case step
      when 'send' then case when state = 'dispatching' then 'being sent again under the same key'
        when reason = 'operator' then 'to be sent again under the same key, as an operator decided'
        else 'to be sent again under the same key' end
      when 'lookup' then 'asking the destination'
      when 'cancel' then 'being cancelled at the destination'
      when 'review' then 'a person must decide'
      else 'being worked out' end)
    when state = 'succeeded' and reason = 'operator' then format('Delivered, as an operator decided at %s.', outbox.utc(closed_at))
    when state = 'succeeded' then format('Delivered; the destination confirmed it at %s.', outbox.utc(closed_at))
    when state = 'terminal_failure' and took_effect is null
      then format('Closed as not delivered (%s), but contradicted: the destination confirmed it later; a person must look.', said)
    when state = 'terminal_failure' and took_effect
      then format('Closed as not delivered (%s), but it took effect, as an operator decided later.', said)
    when state = 'terminal_failure' and holds
      then format('Not delivered (%s); it holds its queue until a person retries it or lets the next go.', said)
    when state = 'terminal_failure' and reason = 'operator'
      then format('Not delivered, as an operator decided at %s; it will not be tried again.', outbox.utc(closed_at))
    when state = 'terminal_failure' then format('Not delivered (%s); it will not be tried again.', said)
    when state = 'dispatching' and step = 'send' and first_sent_at is not null
      then format('Sent %s ago; no answer yet.', outbox.ago(first_sent_at))
    -- A worker that is to send may be about to, whatever has been requested since.
    when is_cancelled and not (state = 'dispatching' and step = 'send') then 'Cancelled; nothing will be sent.'
    when state = 'dispatching' then 'Committed; a worker has it, nothing has been sent yet.'
    when behind is not null then format('Committed; waiting for its turn behind %s.', behind)
    when awaits_original then 'Committed; waits until what it compensates is known to have happened.'
    when state = 'retryable_failure' then format('Not done yet (%s); next attempt at %s.', said, outbox.utc(due_at))
    when due_at > clock_timestamp() and reason is null then format('Committed; to be sent at %s.', outbox.utc(due_at))
    when reason is not null then format('Committed; not sent yet (%s); next attempt at %s.', said, outbox.utc(due_at))
    else 'Committed; delivery pending.' end
  from (select replace(coalesce(reason, 'no reason'), '_', ' ') as said) r $$;

create view outbox.status as
select a.action_id, a.tenant, a.principal, a.operation, a.retry_key, d.state::text, d.step::text,
  outbox.label(d.state, d.step) as label,
  outbox.sentence(d.state, d.step, d.doubt_since, d.first_sent_at, d.due_at, d.reason, d.closed_at,
    c.action_id is not null,
    case when d.state = 'terminal_failure' then outbox.took_effect(d.action_id) end,
    a.compensates is not null and d.state = 'pending' and outbox.took_effect(a.compensates) is null, d.holds,
    case when d.lane is not null and not d.turn and d.closed_at is null then (
      select format('%s (%s)', h.action_id, replace(outbox.label(h.state, h.step), '_', ' '))
      from outbox.delivery h where h.lane = d.lane and h.turn) end) as sentence,
  d.attempts, d.reason, d.receipt, d.doubt_since, d.due_at, a.created_at, d.closed_at
from outbox.action a
join outbox.delivery d using (action_id)
left join outbox.cancellation c using (action_id);

-- Which migrations this schema has: compared by every daemon with what it was built for.
create function outbox.schema_version() returns int language sql immutable set search_path = pg_catalog, pg_temp as $$
  select 7 $$;

-- Functions are everybody's by default; ours are for those to whom deploy/roles.sql or the owner grants them.
revoke all on all functions in schema outbox from public;
