-- The timeline that is being written. The last checkpoint's, which pg_control_checkpoint() knows, may be older than a
-- promotion; a name of a WAL file begins with it in hexadecimal.
--
-- Rows: one. Needs no rights but on functions that are everybody's by default.
select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int as timeline
