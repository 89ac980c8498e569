-- Writes late testimony down: what it means for the row that late_look.sql has locked, and its history.
--
-- $1 uuid action, $2 uuid attempt_id of the overtaken claim
-- $3 text meaning: record | contradicts | close | wait | hold | clear_to_pending | clear_to_retryable | doubt
-- $4 text receipt, $5 bytea pins it was sent under
-- $6 bigint sent so many microseconds ago at the earliest, $7 bigint sent so many microseconds ago at the latest
-- $8 bigint fence, $9 text worker, $10 text idempotency key, $11 bigint started, microseconds ago
-- $12 text evidence, $13 int HTTP status, $14 text detail
-- $15 int number of the attempt
--
-- A row that is put in doubt becomes due with step `conclude`: the next claim climbs the ladder for it.
with told as (
  select $3::text as meaning, clock_timestamp() as now,
    clock_timestamp() - $6::bigint * interval '1 microsecond' as sent_from,
    clock_timestamp() - $7::bigint * interval '1 microsecond' as sent_to
), changed as (
  update outbox.delivery d set
    state = case
      when d.state = 'dispatching' then d.state
      when t.meaning = 'close' then 'succeeded'
      when t.meaning in ('hold', 'doubt') then 'outcome_unknown'
      when t.meaning = 'clear_to_pending' then 'pending'
      when t.meaning = 'clear_to_retryable' then 'retryable_failure'
      else d.state end,
    step = case
      when d.state = 'dispatching' then d.step
      when t.meaning = 'hold' then 'review'
      when t.meaning = 'doubt' then 'conclude'
      when t.meaning in ('clear_to_pending', 'clear_to_retryable') then 'send'
      else d.step end,
    due_at = case
      when d.state = 'dispatching' then d.due_at
      when t.meaning in ('close', 'hold') then null
      else t.now end,
    doubt_since = case
      when t.meaning in ('close', 'clear_to_pending', 'clear_to_retryable') then null
      when t.meaning in ('hold', 'doubt') then coalesce(d.doubt_since, t.now)
      else d.doubt_since end,
    doubt_attempt = case
      when t.meaning in ('close', 'clear_to_pending', 'clear_to_retryable') then null
      when t.meaning = 'doubt' and d.doubt_since is null then $2::uuid
      when t.meaning = 'doubt' then null
      else d.doubt_attempt end,
    proof = case when t.meaning = 'wait' then coalesce($4::text, '') when t.meaning = 'close' then null else d.proof end,
    override = d.override and t.meaning <> 'close',
    receipt = case when t.meaning in ('close', 'hold') then coalesce($4::text, d.receipt) else d.receipt end,
    reason = case
      when t.meaning = 'close' then null
      when t.meaning = 'hold' then 'contradicted'
      when t.meaning = 'doubt' and d.reason is null then 'worker_lost'
      else d.reason end,
    -- While somebody holds the row its sent times cover his send too; they stay, which only shortens a window.
    first_sent_at = case
      when t.meaning in ('clear_to_pending', 'clear_to_retryable') and d.state <> 'dispatching' then null
      when t.meaning = 'doubt' then least(d.first_sent_at, t.sent_from)
      else d.first_sent_at end,
    last_sent_at = case
      when t.meaning in ('clear_to_pending', 'clear_to_retryable') and d.state <> 'dispatching' then null
      -- Beyond the end of the lease, so that the holder's settle sees that the times are not those of his claim.
      when t.meaning = 'doubt' and d.state = 'dispatching' and d.step = 'send'
        then greatest(d.last_sent_at, t.sent_to, d.due_at) + interval '1 microsecond'
      when t.meaning = 'doubt' then greatest(d.last_sent_at, t.sent_to)
      else d.last_sent_at end,
    sent_digest = case
      when t.meaning in ('clear_to_pending', 'clear_to_retryable') and d.state <> 'dispatching' then null
      when t.meaning = 'doubt' and d.sent_digest is distinct from $5::bytea and d.sent_digest is not null then ''::bytea
      when t.meaning = 'doubt' then $5::bytea
      else d.sent_digest end,
    marked_at = case
      when t.meaning in ('clear_to_pending', 'clear_to_retryable') and d.state <> 'dispatching' then null
      else d.marked_at end,
    closed_at = case when t.meaning = 'close' then t.now end,
    -- While somebody holds the row it is when his claim began.
    updated_at = case when d.state = 'dispatching' then d.updated_at else t.now end
  from told t
  where d.action_id = $1::uuid and t.meaning not in ('record', 'contradicts')
  returning d.state
)
insert into outbox.attempt (attempt_id, action_id, number, kind, fence, worker, idempotency_key, started_at,
    deadline_at, finished_at, evidence, verdict, http_status, receipt, detail)
select $2::uuid, $1::uuid, $15::int, 'late', $8::bigint, $9::text, $10::text,
  t.now - $11::bigint * interval '1 microsecond', null, t.now, $12::text,
  coalesce((select c.state from changed c), $3::text), $13::int, $4::text, $14::text
from told t
on conflict do nothing
