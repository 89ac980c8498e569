-- Enqueue: what applications call, in the transaction that changes their own state (R8).

-- A version 7 UUID (RFC 9562, section 5.7). No SET clause: it would stop the function from being inlined, so every
-- name is qualified instead.
create function outbox.uuid_v7() returns uuid language sql volatile parallel safe as $$
  select pg_catalog.encode(
    pg_catalog.set_bit(pg_catalog.set_bit(
      pg_catalog.overlay(pg_catalog.uuid_send(pg_catalog.gen_random_uuid()),
        -- date_part, not extract: a double holds milliseconds, and numeric arithmetic costs ten times as much
        pg_catalog.substring(pg_catalog.int8send(
          (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000)::pg_catalog.int8), 3),
        1, 6),
      52, 1), 53, 1), 'hex')::pg_catalog.uuid $$;

-- A length-prefixed field: NULL and empty differ, and no two lists of fields give the same bytes.
create function outbox.field(v bytea) returns bytea language sql immutable parallel safe as $$
  select case when v is null then pg_catalog.decode('ffffffff', 'hex')
    else pg_catalog.int4send(pg_catalog.octet_length(v)) operator(pg_catalog.||) v end $$;

-- What a key is compared by: everything that reaches the destination or changes the order of effects. Times and
-- trace ids are left out: a redelivered event may carry others.
create function outbox.input_hash(
  body bytea, content_type text, params text, headers text, ordering_key text, compensates uuid
) returns bytea language sql immutable parallel safe as $$
  select pg_catalog.sha256(
    outbox.field(body)
    operator(pg_catalog.||) outbox.field(pg_catalog.convert_to(content_type, 'UTF8'))
    operator(pg_catalog.||) outbox.field(pg_catalog.convert_to(params, 'UTF8'))
    operator(pg_catalog.||) outbox.field(pg_catalog.convert_to(headers, 'UTF8'))
    operator(pg_catalog.||) outbox.field(pg_catalog.convert_to(ordering_key, 'UTF8'))
    operator(pg_catalog.||) outbox.field(pg_catalog.uuid_send(compensates))) $$;

-- The serial queue of an ordering key: half of a hash that nobody can steer, since two keys that met in it would wait
-- for each other.
create function outbox.lane(tenant text, ordering_key text) returns bigint language sql immutable parallel safe as $$
  select ('x' operator(pg_catalog.||) pg_catalog.left(pg_catalog.encode(pg_catalog.sha256(
      outbox.field(pg_catalog.convert_to(tenant, 'UTF8'))
      operator(pg_catalog.||) outbox.field(pg_catalog.convert_to(ordering_key, 'UTF8'))), 'hex'), 16)
    )::pg_catalog.bit(64)::pg_catalog.int8 $$;

-- Refuses what could never be sent (OB422), naming the argument and never its value. Only enqueue_bytes calls it, with
-- its own settings: setting them again would cost every enqueue a tenth more.
create function outbox.refuse_unsendable(
  operation text, retry_key text, tenant text, principal text, params json, headers json, content_type text,
  traceparent text, ordering_key text, authority text, not_before timestamptz
) returns void language plpgsql stable as $$
declare
  wrong text;
begin
  wrong := case
    when operation is null or operation = '' then 'operation is missing'
    when octet_length(operation) > 200 then 'operation is longer than 200 bytes'
    when retry_key is null then 'one of retry_key and event_id is needed'
    when retry_key = '' then 'retry_key is empty'
    when octet_length(retry_key) > 500 then 'retry_key is longer than 500 bytes'
    when tenant is null then 'tenant is null; leave it out or pass an empty text'
    when octet_length(tenant) > 200 then 'tenant is longer than 200 bytes'
    when principal is null then 'principal is null; leave it out or pass an empty text'
    when octet_length(principal) > 200 then 'principal is longer than 200 bytes'
    when octet_length(authority) > 500 then 'authority is longer than 500 bytes'
    when params is not null and json_typeof(params) <> 'object' then 'params is not a JSON object'
    when headers is not null and json_typeof(headers) <> 'object' then 'headers is not a JSON object'
    -- Beside the body they are all that a claim brings into memory.
    when octet_length(params::text) > 65536 then 'params is longer than 65536 bytes'
    when octet_length(headers::text) > 65536 then 'headers is longer than 65536 bytes'
    when content_type ~ '[^ -~]' or octet_length(content_type) > 200 then 'content_type is not a header value of at most 200 bytes'
    when traceparent is not null and traceparent !~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]{0,100})?$'
      then 'traceparent is not a W3C trace context'
    when not isfinite(not_before) then 'not_before is infinite'
    when ordering_key = '' then 'ordering_key is empty; leave it out where there is none'
    when octet_length(ordering_key) > 500 then 'ordering_key is longer than 500 bytes'
  end;
  if wrong is null and headers is not null then
    -- As JSON text, since the value may hold escapes that no text of this database can.
    begin
      select 'headers: ' || case
          when h.key !~ '^[!#$%&''*+.^_`|~0-9A-Za-z-]+$' then 'a name is not a header name'
          when json_typeof(h.value) <> 'string' then format('the value of %s is not a string', h.key)
          else format('the value of %s has a control character', h.key) end
        into wrong
        from json_each(headers) h
        where h.key !~ '^[!#$%&''*+.^_`|~0-9A-Za-z-]+$'
          or json_typeof(h.value) <> 'string'
          -- a backslash that is not itself escaped, and a control character other than a tab behind it
          or h.value::text ~ '(^|[^\\])(\\\\)*\\(u000[0-8a-fA-F]|u001[0-9a-fA-F]|u007[fF]|[bfnr])'
          or strpos(h.value::text, chr(127)) > 0
        limit 1;
    exception when untranslatable_character or invalid_text_representation then
      wrong := 'headers: a name or value has a NUL or half a surrogate pair';
    end;
  end if;
  if wrong is not null then
    raise exception 'this action could never be sent: %', wrong using errcode = 'OB422';
  end if;
end $$;

-- Refuses a body that is larger than its daemon sends (OB422).
create function outbox.refuse_oversize(operation text, bytes bigint) returns void
language plpgsql stable set search_path = pg_catalog, outbox, pg_temp as $$
declare
  v_max bigint;
begin
  select o.body_max into v_max from outbox.operation o where o.operation = refuse_oversize.operation;
  if bytes > v_max then
    raise exception 'this action could never be sent: its body has % bytes, and % may have %', bytes, operation, v_max
      using errcode = 'OB422';
  end if;
end $$;

-- Enqueues a body of bytes. Same key, same input: the first action, created = false. Same key, other input: OB409.
-- Older than the memory of keys: OB410. Never sendable: OB422. Under REPEATABLE READ it may end in 40001: try again.
-- The order matters: look, insert, only then look for a tombstone, each a statement with a snapshot of its own.
create function outbox.enqueue_bytes(
  operation text, body bytea, content_type text default null, retry_key text default null,
  tenant text default '', principal text default '', event_id text default null, params json default null,
  proposal_id text default null, workflow_id text default null, traceparent text default null,
  headers json default null, ordering_key text default null, not_before timestamptz default null,
  expires_at timestamptz default null, requested_at timestamptz default null, authority text default null,
  compensates uuid default null
) returns table (action_id uuid, created boolean, state text)
language plpgsql volatile security definer
set search_path = pg_catalog, outbox, pg_temp set standard_conforming_strings = on as $$
#variable_conflict use_column
declare
  v_key   text := coalesce(enqueue_bytes.retry_key, enqueue_bytes.event_id);
  v_hash  bytea;
  v_id    uuid;
  v_now   timestamptz := clock_timestamp();
  v_found record;
begin
  perform outbox.refuse_unsendable(enqueue_bytes.operation, v_key, enqueue_bytes.tenant, enqueue_bytes.principal,
    enqueue_bytes.params, enqueue_bytes.headers, enqueue_bytes.content_type, enqueue_bytes.traceparent,
    enqueue_bytes.ordering_key, enqueue_bytes.authority, enqueue_bytes.not_before);
  v_hash := outbox.input_hash(enqueue_bytes.body, enqueue_bytes.content_type, enqueue_bytes.params::text,
    enqueue_bytes.headers::text, enqueue_bytes.ordering_key, enqueue_bytes.compensates);

  -- 1. What this snapshot already sees. Under REPEATABLE READ that may be a row that a prune has deleted since.
  select a.action_id, a.input_hash, d.state::text into v_found
    from outbox.action a left join outbox.delivery d using (action_id)
    where a.tenant = enqueue_bytes.tenant and a.principal = enqueue_bytes.principal
      and a.operation = enqueue_bytes.operation and a.retry_key = v_key;
  if not found then
    -- Small bodies don't pay for the question.
    if octet_length(enqueue_bytes.body) > 65536 then
      perform outbox.refuse_oversize(enqueue_bytes.operation, octet_length(enqueue_bytes.body));
    end if;
    -- 2. Ours, unless somebody else's is there or on its way: then this waits until theirs commits or rolls back.
    v_id := outbox.uuid_v7();
    insert into outbox.action (action_id, tenant, principal, operation, retry_key, event_id, proposal_id, workflow_id,
        traceparent, params, headers, content_type, body, input_hash, ordering_key, not_before, expires_at, authority,
        compensates, created_at)
      values (v_id, enqueue_bytes.tenant, enqueue_bytes.principal, enqueue_bytes.operation, v_key,
        enqueue_bytes.event_id, enqueue_bytes.proposal_id, enqueue_bytes.workflow_id, enqueue_bytes.traceparent,
        enqueue_bytes.params, enqueue_bytes.headers, enqueue_bytes.content_type, enqueue_bytes.body, v_hash,
        enqueue_bytes.ordering_key, enqueue_bytes.not_before, enqueue_bytes.expires_at, enqueue_bytes.authority,
        enqueue_bytes.compensates, v_now)
      on conflict on constraint action_identity do nothing;
    if found then
      -- 3. The tombstone last: this snapshot is younger than any prune that the insert has waited for.
      select t.action_id, t.input_hash, t.state::text into v_found from outbox.tombstone t
        where t.tenant = enqueue_bytes.tenant and t.principal = enqueue_bytes.principal
          and t.operation = enqueue_bytes.operation and t.retry_key = v_key;
      if found then
        delete from outbox.action a where a.action_id = v_id;
      else
        -- Under one snapshot for the whole transaction the tombstone may be younger than that: an index knows it all
        -- the same, and refuses (40001).
        if current_setting('transaction_isolation') <> 'read committed' then
          insert into outbox.tombstone (action_id, tenant, principal, operation, retry_key, input_hash, state, created_at, closed_at)
            values (v_id, enqueue_bytes.tenant, enqueue_bytes.principal, enqueue_bytes.operation, v_key, v_hash,
              'succeeded', v_now, v_now)
            on conflict on constraint tombstone_identity do nothing;
          delete from outbox.tombstone t where t.action_id = v_id;
        end if;
        -- A day for the clock of whoever says when it was requested.
        if enqueue_bytes.requested_at is not null and enqueue_bytes.requested_at - interval '1 day' <
            (select o.forgets_before from outbox.operation o where o.operation = enqueue_bytes.operation) then
          raise exception 'this request is older than the memory of keys of %', enqueue_bytes.operation
            using errcode = 'OB410', hint = 'It may have been carried out before; find out by other means.';
        end if;
        -- Locked until this commits: what an open action compensates must not be forgotten. What is pruned meanwhile
        -- has left its tombstone.
        if enqueue_bytes.compensates is not null then
          perform from outbox.action a
            where a.action_id = enqueue_bytes.compensates and a.tenant = enqueue_bytes.tenant for key share;
          if not found then
            perform from outbox.tombstone t
              where t.action_id = enqueue_bytes.compensates and t.tenant = enqueue_bytes.tenant for key share;
            if not found then
              raise exception 'this action could never be sent: compensates names no action of its tenant' using errcode = 'OB422';
            end if;
          end if;
        end if;
        -- The place is drawn while whatever the transaction serialises on is locked; nothing else is, here.
        insert into outbox.delivery (action_id, operation, tenant, due_at, budget_from, lane, place, updated_at)
          values (v_id, enqueue_bytes.operation, enqueue_bytes.tenant, coalesce(enqueue_bytes.not_before, v_now),
            greatest(enqueue_bytes.not_before, v_now),
            case when enqueue_bytes.ordering_key is not null
              then outbox.lane(enqueue_bytes.tenant, enqueue_bytes.ordering_key) end,
            case when enqueue_bytes.ordering_key is not null then nextval('outbox.place') end, v_now);
        -- Ring only when a dispatcher sleeps: a NOTIFY in every transaction would cut throughput to a third.
        if coalesce(current_setting('outbox.bell', true), '') <> 'off'
            and not pg_try_advisory_xact_lock_shared(7813402954201167431) then
          perform pg_notify('outbox', '');
        end if;
        return query select v_id, true, 'pending'::text;
        return;
      end if;
    else
      -- Somebody else's; the insert has waited for their commit, and this statement sees it.
      select a.action_id, a.input_hash, d.state::text into v_found
        from outbox.action a left join outbox.delivery d using (action_id)
        where a.tenant = enqueue_bytes.tenant and a.principal = enqueue_bytes.principal
          and a.operation = enqueue_bytes.operation and a.retry_key = v_key;
      if not found then
        raise exception 'the action under this retry_key is being pruned; try again' using errcode = '40001';
      end if;
    end if;
  end if;
  if v_found.input_hash <> v_hash then
    raise exception 'this retry_key of % was used with another input', enqueue_bytes.operation
      using errcode = 'OB409', detail = format('It belongs to action %s.', v_found.action_id),
        hint = 'Changed content is a new action: give it a retry_key of its own.';
  end if;
  return query select v_found.action_id, false, v_found.state;
end $$;

-- Enqueues a JSON body. `json`, not `jsonb`: the bytes sent are the bytes given.
create function outbox.enqueue(
  operation text, payload json, retry_key text default null,
  tenant text default '', principal text default '', event_id text default null, params json default null,
  proposal_id text default null, workflow_id text default null, traceparent text default null,
  headers json default null, ordering_key text default null, not_before timestamptz default null,
  expires_at timestamptz default null, requested_at timestamptz default null, authority text default null,
  compensates uuid default null
) returns table (action_id uuid, created boolean, state text)
language sql volatile security definer set search_path = pg_catalog, outbox, pg_temp as $$
  select e.action_id, e.created, e.state from outbox.enqueue_bytes(
    operation, convert_to(payload::text, 'UTF8'), case when payload is not null then 'application/json' end, retry_key,
    tenant, principal, event_id, params, proposal_id, workflow_id, traceparent, headers, ordering_key, not_before,
    expires_at, requested_at, authority, compensates) e $$;

-- True the first time a message of a source is seen (R6). In one transaction with what the message causes.
create function outbox.receive(source text, message_id text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, outbox, pg_temp as $$
begin
  if source is null or source = '' or message_id is null or message_id = ''
      or octet_length(source) > 200 or octet_length(message_id) > 500 then
    raise exception 'receive needs a source of 1 to 200 bytes and a message_id of 1 to 500' using errcode = 'OB422';
  end if;
  insert into outbox.inbox (source, message_id) values (receive.source, receive.message_id) on conflict do nothing;
  return found;
end $$;
