-- Writes down that a daemon is there and how its destinations stand; removes those that have been gone for an hour.
--
-- $1 text worker, $2 text its version, $3 bigint microseconds since it was started, $4 bigint microseconds for which it
-- is believed. Arrays of one length, one element a destination: $5 text[] name, $6 text[] state, $7 bigint[]
-- microseconds since it is so (null = open), $8 text[] reason, $9 int[] HTTP status, $10 int[] probes, $11 int[] requests
-- in flight, $12 int[] the most at once
-- Rows: one, the database's time. Race won: what another daemon removes just now is left to it.
with gone as (
  delete from outbox.daemon d where d.worker in (
    select g.worker from outbox.daemon g
    where g.believed_until < clock_timestamp() - interval '1 hour' and g.worker <> $1
    for update skip locked)
)
insert into outbox.daemon as d (worker, version, started_at, seen_at, believed_until, destinations)
select $1, $2, clock_timestamp() - $3::bigint * interval '1 microsecond', clock_timestamp(),
  clock_timestamp() + $4::bigint * interval '1 microsecond',
  (select coalesce(json_agg(json_build_object(
      'destination', t.destination, 'state', t.state,
      'since', clock_timestamp() - t.since * interval '1 microsecond', 'reason', t.reason, 'status', t.status,
      'probes', t.probes, 'in_flight', t.in_flight, 'max_in_flight', t.max_in_flight) order by t.destination), '[]')
    from unnest($5::text[], $6::text[], $7::bigint[], $8::text[], $9::int[], $10::int[], $11::int[], $12::int[])
      as t(destination, state, since, reason, status, probes, in_flight, max_in_flight))
on conflict (worker) do update set
  version = excluded.version, seen_at = excluded.seen_at, believed_until = excluded.believed_until,
  destinations = excluded.destinations
returning clock_timestamp()
