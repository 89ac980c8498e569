-- Which ledger this is, and which cluster it was used on last.

create table outbox.ledger (
  -- Goes with the data wherever they are copied or restored to.
  ledger_id         uuid        primary key default gen_random_uuid(),
  -- Of the cluster that a daemon was last on, as far as it could read them; null = not known.
  system_identifier bigint,
  timeline          int,
  remembered_at     timestamptz,
  the_only_one      boolean     not null default true unique,
  constraint ledger_is_one check (the_only_one)
);
insert into outbox.ledger default values;

-- Says which ledger this is and what is remembered of its cluster; what is not known yet is remembered from now on.
create function outbox.recognise(this_system bigint, this_timeline int)
returns table (ledger_id uuid, system_identifier bigint, timeline int)
language plpgsql volatile security definer set search_path = pg_catalog, outbox, pg_temp as $$
#variable_conflict use_column
begin
  update outbox.ledger l set
    system_identifier = coalesce(l.system_identifier, this_system),
    timeline = coalesce(l.timeline, this_timeline),
    remembered_at = clock_timestamp()
  where l.system_identifier is null and this_system is not null or l.timeline is null and this_timeline is not null;
  return query select l.ledger_id, l.system_identifier, l.timeline from outbox.ledger l;
end $$;

-- Remembers this cluster, whatever was remembered: a person has looked at what a failover or a backup may have lost.
create function outbox.accept_cluster(this_system bigint, this_timeline int) returns void
language sql volatile security definer set search_path = pg_catalog, outbox, pg_temp as $$
  update outbox.ledger l set system_identifier = this_system, timeline = this_timeline, remembered_at = clock_timestamp() $$;

create or replace function outbox.schema_version() returns int language sql immutable set search_path = pg_catalog, pg_temp as $$
  select 10 $$;

-- Functions are everybody's by default; ours are for those to whom deploy/roles.sql or the owner grants them.
revoke all on all functions in schema outbox from public;
