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

-- This cluster, as far as its server has such things and lets its owner see them; null = not readable.
create function outbox.cluster(out system_identifier bigint, out timeline int)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
begin
  begin
    system_identifier := (select c.system_identifier from pg_control_system() c);
  exception when others then null;
  end;
  -- The timeline that is being written, whose WAL files' names begin with it in hexadecimal. The last checkpoint's, which
  -- pg_control_checkpoint() knows, may be older than a promotion.
  begin
    timeline := ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int;
  exception when others then null;
  end;
end $$;

-- In words, the system identifier as PostgreSQL's tools print it: unsigned.
create function outbox.cluster_in_words(system_identifier bigint, timeline int) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
  select coalesce('system identifier ' || (system_identifier + case when system_identifier < 0 then 18446744073709551616 else 0 end),
      'a system identifier that cannot be read')
    || coalesce(', timeline ' || timeline, ', a timeline that cannot be read') $$;

-- Refuses to go on (OB421) on a cluster or a timeline other than these, as far as both can be read.
create function outbox.same_cluster(was_system bigint, was_timeline int) returns void
language plpgsql volatile security definer set search_path = pg_catalog, outbox, pg_temp as $$
declare
  here record;
begin
  select * into strict here from outbox.cluster();
  if here.system_identifier <> was_system or here.timeline <> was_timeline then
    raise exception using errcode = 'OB421', message = format('%s; now %s',
      outbox.cluster_in_words(was_system, was_timeline), outbox.cluster_in_words(here.system_identifier, here.timeline));
  end if;
end $$;

-- Says which ledger this is, and on which cluster; what is not known of that yet is remembered from now on. Refuses one that
-- is not what is remembered (OB421).
create function outbox.recognise(out ledger_id uuid, out system_identifier bigint, out timeline int)
language plpgsql volatile security definer set search_path = pg_catalog, outbox, pg_temp as $$
#variable_conflict use_column
declare
  here record;
  known record;
begin
  select * into strict here from outbox.cluster();
  update outbox.ledger l set
    system_identifier = coalesce(l.system_identifier, here.system_identifier),
    timeline = coalesce(l.timeline, here.timeline),
    remembered_at = clock_timestamp()
  where l.system_identifier is null and here.system_identifier is not null or l.timeline is null and here.timeline is not null;
  select l.* into strict known from outbox.ledger l;
  perform outbox.same_cluster(known.system_identifier, known.timeline);
  recognise.ledger_id := known.ledger_id;
  recognise.system_identifier := here.system_identifier;
  recognise.timeline := here.timeline;
end $$;

-- Remembers this cluster, whatever was remembered: a person has looked at what a failover or a backup may have lost. Says
-- which it is.
create function outbox.accept_cluster() returns text
language sql volatile security definer set search_path = pg_catalog, outbox, pg_temp as $$
  update outbox.ledger l set system_identifier = here.system_identifier, timeline = here.timeline, remembered_at = clock_timestamp()
  from outbox.cluster() here
  returning outbox.cluster_in_words(l.system_identifier, l.timeline) $$;

create or replace function outbox.schema_version() returns int language sql immutable set search_path = pg_catalog, pg_temp as $$
  select 10 $$;

-- Functions are everybody's by default; ours are for those to whom deploy/roles.sql or the owner grants them.
revoke all on all functions in schema outbox from public;
