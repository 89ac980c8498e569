-- Writes decisions down, each under its own fence, with its history.
--
-- Arrays of one length, sorted by action id (two settles never lock in opposite orders):
-- $1  uuid[]        action                    $2  bigint[]      fence
-- $3  uuid[]        attempt_id of the claim   $4  timestamptz[] doubt_since as decided upon
-- $5  uuid[]        doubt_attempt as decided upon               $6  text[]  proof as decided upon
-- $7  text[]        state                     $8  text[]        step
-- $9  bigint[]      due in so many microseconds; null = not due $10 text[]  reason
-- $11 text[]        receipt                   $12 int[]         attempts
-- $13 timestamptz[] doubt_since               $14 uuid[]        doubt_attempt
-- $15 text[]        sent times: keep | ended | given_back | cleared
-- $16 timestamptz[] first_sent_at before the claim              $17 timestamptz[] last_sent_at before the claim
-- $18 boolean[]     the operator's send_again was not used up
-- $19 text[]        history: kind; null = none $20 text[]       idempotency key
-- $21 bigint[]      started, microseconds before now            $22 bigint[] deadline, microseconds after the start
-- $23 text[]        evidence                  $24 int[]         HTTP status
-- $25 text[]        detail                    $26 text          worker
-- $27 bytea[]       sent_digest as decided upon; null = nothing was sent
-- $28 boolean[]     a failure that holds the serial queue that the row is in
--
-- Rows: attempt_id of each claim whose decision was written: two claims of one action may be in one batch. What is
-- missing was no longer as decided upon.
-- Race won: fence, attempt_id and state are compared by the update itself; after a failover to a replica that lost
-- a claim the fence alone may be handed out twice, the attempt_id never is.
-- Sent times are only changed where the row still has what this claim wrote (`last_sent_at = due_at`, the lease's
-- end): a late widening stays. What a lookup or a cancel has learnt is not written over one either, and nothing over a
-- digest that late testimony has changed: an absence under one account proves nothing about a send under another.
-- A row of a serial queue keeps its turn when it closes, as the mark for outbox.promote.
with told as materialized (
  select * from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::timestamptz[], $5::uuid[], $6::text[], $7::text[],
      $8::text[], $9::bigint[], $10::text[], $11::text[], $12::int[], $13::timestamptz[], $14::uuid[], $15::text[],
      $16::timestamptz[], $17::timestamptz[], $18::boolean[], $19::text[], $20::text[], $21::bigint[], $22::bigint[],
      $23::text[], $24::int[], $25::text[], $27::bytea[], $28::boolean[])
    as t(action_id, fence, attempt_id, was_since, was_attempt, was_proof, state, step, due_in, reason, receipt,
      attempts, doubt_since, doubt_attempt, sent, first_before, last_before, override_back, kind, idempotency_key,
      started_ago, deadline_in, evidence, http_status, detail, was_digest, holds)
), done as (
  update outbox.delivery d set
    state = t.state,
    step = t.step,
    due_at = clock_timestamp() + t.due_in * interval '1 microsecond',
    worker = null,
    attempt_id = null,
    attempts = t.attempts,
    reason = t.reason,
    -- What was told of another answer is not the receipt of this success.
    receipt = case when t.state = 'succeeded' then t.receipt else coalesce(t.receipt, d.receipt) end,
    doubt_since = t.doubt_since,
    doubt_attempt = t.doubt_attempt,
    -- used up by what closes or holds the row; a claim that is handed back leaves it waiting
    proof = case when t.state not in ('succeeded', 'terminal_failure') and t.step <> 'review' then d.proof end,
    override = t.override_back,
    first_sent_at = case
      when t.sent = 'cleared' then null
      when t.sent = 'given_back' and d.last_sent_at = d.due_at then t.first_before
      else d.first_sent_at end,
    last_sent_at = case
      when t.sent = 'cleared' then null
      when t.sent = 'given_back' and d.last_sent_at = d.due_at then t.last_before
      when t.sent = 'ended' and d.last_sent_at = d.due_at then greatest(d.first_sent_at, least(d.due_at, clock_timestamp()))
      else d.last_sent_at end,
    sent_digest = case
      when t.sent = 'cleared' or (t.sent = 'given_back' and t.doubt_since is null) then null
      else d.sent_digest end,
    marked_at = case when t.sent in ('cleared', 'given_back') then null else d.marked_at end,
    holds = t.holds and d.turn,
    closed_at = case when t.state in ('succeeded', 'terminal_failure') then clock_timestamp() end,
    updated_at = clock_timestamp()
  from told t
  where d.action_id = t.action_id and d.fence = t.fence and d.attempt_id = t.attempt_id and d.state = 'dispatching'
    and d.doubt_since is not distinct from t.was_since and d.doubt_attempt is not distinct from t.was_attempt
    and d.proof is not distinct from t.was_proof and d.sent_digest is not distinct from t.was_digest
    and (d.step = 'send' or d.last_sent_at is not distinct from t.last_before)
  returning d.action_id, t.attempt_id, d.attempts, d.fence, d.state, t.kind, t.idempotency_key, t.started_ago,
    t.deadline_in, t.evidence, t.http_status, t.receipt, t.detail
), history as (
  insert into outbox.attempt (attempt_id, action_id, number, kind, fence, worker, idempotency_key, started_at,
      deadline_at, finished_at, evidence, verdict, http_status, receipt, detail)
  select n.attempt_id, n.action_id, n.attempts, n.kind, n.fence, $26::text, n.idempotency_key,
    clock_timestamp() - n.started_ago * interval '1 microsecond',
    clock_timestamp() + (n.deadline_in - n.started_ago) * interval '1 microsecond',
    clock_timestamp(), n.evidence, n.state, n.http_status, n.receipt, n.detail
  from done n where n.kind is not null
)
select attempt_id from done
