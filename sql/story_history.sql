-- The history of an action: every finished attempt, lookup, cancel, late testimony and decision.
--
-- $1 uuid action, $2 bigint the most rows
-- Rows: the latest, oldest first. Index: the primary key, of this action alone.
select * from (
  select h.attempt_id, h.number, h.kind, h.fence, h.worker, h.idempotency_key, h.started_at, h.deadline_at,
    h.finished_at, h.evidence, h.verdict, h.http_status, h.receipt, h.detail, h.decided_by
  from outbox.attempt h where h.action_id = $1
  order by h.finished_at desc, h.fence desc limit $2) h
order by h.finished_at, h.fence
