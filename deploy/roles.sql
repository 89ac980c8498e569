-- Four roles to grant to logins, each with no more than it needs. Optional; run it as the schema's owner or a superuser
-- after `outboxd migrate`, and again after every later one. Whoever runs it needs CREATEROLE unless the roles exist.
--
--   psql "$DATABASE_URL" -f roles.sql
--   grant outbox_app to my_application;
--   grant outbox_dispatcher to outboxd;
--
-- outbox_app         an application: enqueues, receives, cancels, reads the status; never a body, never another table
-- outbox_dispatcher  `outboxd run` and `check`: moves deliveries, writes history and the inventory, says that it is there; prunes,
--                    and deletes nothing else
-- outbox_operator    a person's tool: stops things, decides what no evidence does, reads the history; never a body
-- outbox_reader      a UI or an assistant: reads the status
--
-- Roles belong to the whole cluster, what they may do to this database.

do $$
declare
  role text;
begin
  foreach role in array array['outbox_app', 'outbox_dispatcher', 'outbox_operator', 'outbox_reader'] loop
    if not exists (select from pg_catalog.pg_roles where rolname = role) then
      begin
        execute pg_catalog.format('create role %I nologin', role);
      exception when duplicate_object or unique_violation then
        null; -- made meanwhile, from another database
      end;
    end if;
  end loop;
end $$;

begin;

-- From nothing, so that what a former version granted does not stay.
revoke all on schema outbox from public, outbox_app, outbox_dispatcher, outbox_operator, outbox_reader;
revoke all on all tables in schema outbox from public, outbox_app, outbox_dispatcher, outbox_operator, outbox_reader;
revoke all on all sequences in schema outbox from public, outbox_app, outbox_dispatcher, outbox_operator, outbox_reader;
revoke all on all functions in schema outbox from public, outbox_app, outbox_dispatcher, outbox_operator, outbox_reader;

grant usage on schema outbox to outbox_app, outbox_dispatcher, outbox_operator, outbox_reader;

-- The status, and the functions that its view calls on behalf of whoever reads it.
grant select on outbox.status to outbox_app, outbox_operator, outbox_reader;
grant execute on function
    outbox.label(text, text),
    outbox.sentence(text, text, timestamptz, timestamptz, timestamptz, text, timestamptz, boolean, boolean, boolean,
      boolean, text),
    outbox.took_effect(uuid),
    outbox.ago(timestamptz),
    outbox.utc(timestamptz)
  to outbox_app, outbox_operator, outbox_reader;

-- These run as their owner: whoever calls them needs no table.
grant execute on function
    outbox.enqueue(text, json, text, text, text, text, json, text, text, text, json, text, timestamptz, timestamptz,
      timestamptz, text, uuid),
    outbox.enqueue_bytes(text, bytea, text, text, text, text, text, json, text, text, text, json, text, timestamptz,
      timestamptz, timestamptz, text, uuid),
    outbox.receive(text, text),
    outbox.cancel(uuid, text, text)
  to outbox_app;
grant execute on function
    outbox.cancel(uuid, text, text),
    outbox.revoke(text, text, text, text, text, text),
    outbox.restore(bigint, text, text),
    outbox.resolve(uuid, text, text, text, text),
    outbox.retry(uuid, text, text),
    outbox.release(uuid, text, text),
    outbox.resume(text, text, text),
    outbox.schema_version()
  to outbox_operator;
-- The whole story of an action, but never what is in it.
grant select (action_id, tenant, principal, operation, retry_key, event_id, proposal_id, workflow_id, traceparent,
    content_type, input_hash, ordering_key, not_before, expires_at, authority, compensates, created_at)
  on outbox.action to outbox_operator;
grant select on outbox.delivery, outbox.attempt, outbox.tombstone, outbox.cancellation, outbox.revocation, outbox.operation,
    outbox.daemon, outbox.resume_request
  to outbox_operator;

-- What the statements of `outboxd run` touch.
grant select on outbox.action, outbox.cancellation, outbox.revocation to outbox_dispatcher;
grant select, update on outbox.delivery to outbox_dispatcher;
grant select, insert on outbox.attempt to outbox_dispatcher;
grant select on outbox.operation to outbox_dispatcher;
grant insert (operation, destination, effect, contract, meaning, owner, absence, hold_on_failure, body_max),
    update (destination, effect, contract, meaning, owner, absence, hold_on_failure, body_max, updated_at)
  on outbox.operation to outbox_dispatcher; -- never forgets_before
grant select on outbox.tombstone to outbox_dispatcher;
grant select, insert, update, delete on outbox.daemon to outbox_dispatcher;
grant select on outbox.resume_request to outbox_dispatcher;
grant execute on function outbox.schema_version(), outbox.took_effect(uuid), outbox.recognise(),
    outbox.same_cluster(bigint, int)
  to outbox_dispatcher; -- whoever accepts another cluster is the owner
-- Run as their owner: which row of a serial queue has the turn.
grant execute on function outbox.promote(int), outbox.mend_queues(bigint, int) to outbox_dispatcher;
-- Deletes as its owner, and only what is closed and old.
grant execute on function outbox.prune(text[], interval[], interval[]) to outbox_dispatcher;

commit;
