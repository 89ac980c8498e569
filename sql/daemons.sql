-- The daemons that are there, and how their destinations stand.
--
-- Rows: one for each daemon and destination; a daemon without one has a row with a null destination.
select d.worker, d.version, d.started_at, d.seen_at, s.destination, s.state, s.since, s.reason, s.status,
  s.probes, s.in_flight, s.max_in_flight
from outbox.daemon d
left join lateral json_to_recordset(d.destinations) as s(
  destination text, state text, since timestamptz, reason text, status int, probes int, in_flight int,
  max_in_flight int) on true
where d.believed_until > clock_timestamp()
order by d.started_at, d.worker, s.destination
