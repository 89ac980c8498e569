-- Tries to keep the door that enqueues ring at while somebody sleeps.
--
-- $1 bigint the door's advisory lock, which enqueues hold shared until they end
--
-- Rows: one. `ours`: this session holds it from now on; `theirs`: another dispatcher does; `in_flight`: an enqueue does,
-- or another dispatcher that asks this very question.
-- Race won: one statement, so that the shared lock is held for microseconds and not for the way there and back, in which
-- two dispatchers would take each other for an enqueue.
select case
  when pg_try_advisory_lock($1) then 'ours'
  when not pg_try_advisory_lock_shared($1) then 'theirs'
  when pg_advisory_unlock_shared($1) then 'in_flight'
end
