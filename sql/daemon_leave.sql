-- A daemon goes.
--
-- $1 text worker
delete from outbox.daemon where worker = $1
