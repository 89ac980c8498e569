-- The revocations that speak of an action and were in force at some time between its commit and its end, or would stop
-- another try of what was closed as not done.
--
-- $1 uuid action
-- Rows: at most 20, the latest ones, oldest first. There are few revocations.
select * from (
  select r.revocation, r.revoked_at, r.revoked_by, r.reason, r.lifted_at, r.lifted_by, r.lifted_reason
  from outbox.action a
  join outbox.delivery d using (action_id)
  join outbox.revocation r
    on (r.tenant is null or r.tenant = a.tenant) and (r.principal is null or r.principal = a.principal)
    and (r.operation is null or r.operation = a.operation) and (r.authority is null or r.authority = a.authority)
  where a.action_id = $1 and coalesce(r.lifted_at, 'infinity') >= a.created_at
    and (r.revoked_at <= coalesce(d.closed_at, 'infinity') or d.state = 'terminal_failure' and r.lifted_at is null)
  order by r.revocation desc limit 20) r
order by r.revocation
