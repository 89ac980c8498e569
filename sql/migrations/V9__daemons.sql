-- Which daemons there are and how their destinations stand, as each says itself; and what a person asks of them. The
-- command line and the daemons meet only here.

-- One row a daemon. Written when something changes and with each line of figures, never for an action.
create table outbox.daemon (
  worker         text        collate "C" primary key,
  version        text        not null,
  started_at     timestamptz not null,
  seen_at        timestamptz not null,
  -- After that it is believed to be gone.
  believed_until timestamptz not null,
  -- A list of objects: destination, state (open, credentials, unreachable, silent), since, reason, status, probes,
  -- in_flight, max_in_flight.
  destinations   json        not null
);

-- The last request that a destination be probed at once. Read by daemons that have it paused.
create table outbox.resume_request (
  destination  text        collate "C" primary key,
  requested_at timestamptz not null,
  requested_by text        not null,
  reason       text        not null,
  constraint destination_fits check (octet_length(destination) between 1 and 200)
);

-- Asks every daemon that has a destination paused to probe it at once. Returns how many have said that they have.
create function outbox.resume(destination text, by text, reason text) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, outbox, pg_temp as $$
#variable_conflict use_column
begin
  perform outbox.refuse_unfounded('resume', resume.by, resume.reason);
  insert into outbox.resume_request as r (destination, requested_at, requested_by, reason)
    values (resume.destination, clock_timestamp(), resume.by, resume.reason)
    on conflict (destination) do update set
      requested_at = excluded.requested_at, requested_by = excluded.requested_by, reason = excluded.reason;
  return (select count(*) from outbox.daemon d
    where d.believed_until > clock_timestamp() and exists (
      select from json_to_recordset(d.destinations) as s(destination text, state text)
      where s.destination = resume.destination and s.state <> 'open'));
end $$;

create or replace function outbox.schema_version() returns int language sql immutable
set search_path = pg_catalog, pg_temp as $$ select 9 $$;

revoke all on all tables in schema outbox from public;
revoke all on all functions in schema outbox from public;
