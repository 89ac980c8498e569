-- The ledger's tables. Three of them carry the work, because they change at three speeds: the intent never changes,
-- where it stands changes with every claim and settle, its history only grows.
-- Runs as whoever owns the schema; needs only the right to create one. PostgreSQL 13 to 18.

create schema if not exists outbox;

-- Names, as domains: PostgreSQL keeps a domain's check compiled for the session, but reads a table's checks anew in
-- every statement that writes to it.
create domain outbox.state_name as text collate "C" constraint state_is_known check (value in
  ('pending', 'dispatching', 'succeeded', 'retryable_failure', 'terminal_failure', 'outcome_unknown'));
create domain outbox.step_name as text collate "C" constraint step_is_known check (value in
  ('send', 'lookup', 'cancel', 'conclude', 'review'));

-- The intent: what was committed. Never updated (V2 refuses it even to the owner).
create table outbox.action (
  action_id     uuid        primary key,
  tenant        text        collate "C" not null default '',
  principal     text        collate "C" not null default '',
  operation     text        collate "C" not null,
  retry_key     text        collate "C" not null,
  event_id      text,
  proposal_id   text,
  workflow_id   text,
  traceparent   text,
  params        json,
  headers       json,
  content_type  text,
  body          bytea,
  input_hash    bytea       not null,
  ordering_key  text        collate "C",
  not_before    timestamptz,
  expires_at    timestamptz,
  authority     text        collate "C",
  compensates   uuid,
  created_at    timestamptz not null,
  constraint action_identity unique (tenant, operation, retry_key, principal),
  -- An index entry holds at most about 2,700 bytes; the four together stay below it.
  constraint identity_fits check (
    octet_length(tenant) <= 200 and octet_length(principal) <= 200
    and octet_length(operation) between 1 and 200 and octet_length(retry_key) between 1 and 500),
  constraint ordering_key_fits check (octet_length(ordering_key) <= 500),
  constraint authority_fits check (octet_length(authority) <= 500),
  constraint ids_fit check (
    octet_length(event_id) <= 500 and octet_length(proposal_id) <= 500 and octet_length(workflow_id) <= 500
    and octet_length(traceparent) <= 200 and octet_length(content_type) <= 200),
  constraint input_hash_is_sha256 check (octet_length(input_hash) = 32)
);

-- What compensates an action: most actions compensate nothing and are not in it.
create index action_compensates on outbox.action (compensates) where compensates is not null;

-- Where it stands: one narrow row per action, the only one that is updated.
create table outbox.delivery (
  action_id      uuid        primary key,
  operation      text        collate "C" not null,
  tenant         text        collate "C" not null default '',
  state          outbox.state_name not null default 'pending',
  step           outbox.step_name  not null default 'send',
  asks           boolean     not null generated always as (step in ('lookup', 'cancel')) stored,
  due_at         timestamptz,
  fence          bigint      not null default 0,
  attempt_id     uuid,
  attempts       int         not null default 0,
  worker         text,
  budget_from    timestamptz not null,
  first_sent_at  timestamptz,
  last_sent_at   timestamptz,
  doubt_since    timestamptz,
  doubt_attempt  uuid,
  proof          text,
  cancel_sent_at timestamptz,
  override       boolean     not null default false,
  marked_at      timestamptz,
  sent_digest    bytea,
  reason         text        collate "C",
  receipt        text,
  lane           bigint,
  place          bigint,
  turn           boolean     not null default false,
  holds          boolean     not null default false,
  closed_at      timestamptz,
  updated_at     timestamptz not null,
  constraint closed_iff_closed_at check ((closed_at is not null) = (state in ('succeeded', 'terminal_failure'))),
  constraint closed_is_never_due check (closed_at is null or due_at is null),
  constraint dispatching_is_leased check (
    (state = 'dispatching') = (worker is not null)
    and (state <> 'dispatching' or (due_at is not null and attempt_id is not null))),
  constraint unknown_has_doubt check (state <> 'outcome_unknown' or doubt_since is not null),
  constraint doubt_only_while_open check (doubt_since is null or state in ('outcome_unknown', 'dispatching')),
  constraint doubt_attempt_needs_doubt check (doubt_attempt is null or doubt_since is not null),
  constraint held_is_unknown_and_never_due check (
    step <> 'review' or closed_at is not null or (state = 'outcome_unknown' and due_at is null)),
  constraint open_is_due_or_held_or_parked check (
    closed_at is not null or due_at is not null or step = 'review' or (lane is not null and not turn)),
  constraint closed_waits_for_nothing check (closed_at is null or (proof is null and not override)),
  constraint sent_times_in_order check (
    (first_sent_at is null) = (last_sent_at is null) and first_sent_at <= last_sent_at),
  constraint waiting_is_unsent check (
    state not in ('pending', 'retryable_failure') or (first_sent_at is null and sent_digest is null and marked_at is null)),
  constraint lane_has_place check ((lane is null) = (place is null) and (lane is not null or not turn)),
  constraint only_a_failure_holds check (not holds or (turn and state = 'terminal_failure'))
) with (
  fillfactor = 75,
  -- Every claim and settle leaves a dead row behind: clean up early and without pauses.
  autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.1
);

-- What a claim walks: rows outside a serial queue, and the row whose turn it is. Those that ask a destination apart
-- from those that send: each kind has slots of its own, and neither backlog stands in the other's way.
create index delivery_due on outbox.delivery (operation, asks, tenant, due_at)
  where due_at is not null and (lane is null or turn);
-- With the one above: every open row, for counts, but for those that have just arrived in a serial queue. Held rows are
-- apart from parked ones, however many those are.
create index delivery_held on outbox.delivery (step, operation) where due_at is null and closed_at is null;
-- The pruner's.
create index delivery_closed on outbox.delivery (operation, closed_at) where closed_at is not null;

-- What was closed as not done, for whoever asks: few among many that succeeded.
create index delivery_not_done on outbox.delivery (action_id) where state = 'terminal_failure';

-- Serial queues. An enqueue writes its row as arrived: due, and not its turn, so that no claim sees it. Only
-- outbox.promote (V8) gives it its turn or parks it (never due until then). Whoever closes a row leaves its turn with
-- it, as a mark that the next one is to get it; a row that holds its queue keeps it until a person lets go.
create sequence outbox.place;
-- Who waits, in order: arrived and parked.
create index delivery_waiting on outbox.delivery (lane, place) where lane is not null and not turn and closed_at is null;
-- The last word, should all else be wrong.
create unique index one_turn_per_lane on outbox.delivery (lane) where turn;
-- What outbox.promote has to see to. Mostly empty: every claim looks whether it is.
create index delivery_unplaced on outbox.delivery (place)
  where lane is not null and (not turn and due_at is not null or turn and closed_at is not null and not holds);

-- History: append-only, one row per finished attempt, lookup, cancel, late testimony or human decision.
-- No foreign key: it would touch pages that nothing else touches any more.
create table outbox.attempt (
  attempt_id      uuid        not null,
  action_id       uuid        not null,
  number          int         not null,
  kind            text        collate "C" not null,
  fence           bigint      not null,
  worker          text,
  idempotency_key text,
  started_at      timestamptz,
  deadline_at     timestamptz,
  finished_at     timestamptz not null,
  evidence        text        collate "C" not null,
  verdict         text        collate "C" not null,
  http_status     int,
  receipt         text,
  detail          text,
  decided_by      text,
  primary key (action_id, attempt_id, kind),
  constraint kind_is_known check (kind in ('send', 'lookup', 'cancel', 'late', 'decision')),
  constraint decision_has_author check ((kind = 'decision') = (decided_by is not null)),
  constraint detail_is_bounded check (octet_length(detail) <= 4000 and octet_length(receipt) <= 1000)
);

-- Identity of pruned actions (R5).
create table outbox.tombstone (
  action_id  uuid        primary key,
  tenant     text        collate "C" not null,
  principal  text        collate "C" not null,
  operation  text        collate "C" not null,
  retry_key  text        collate "C" not null,
  input_hash bytea       not null,
  state      text        collate "C" not null,
  receipt    text,
  created_at timestamptz not null,
  closed_at  timestamptz not null,
  constraint tombstone_identity unique (tenant, operation, retry_key, principal),
  constraint tombstone_is_closed check (state in ('succeeded', 'terminal_failure'))
);
create index tombstone_closed on outbox.tombstone (operation, closed_at);

-- Incoming messages that have been taken (R6).
create table outbox.inbox (
  source      text        collate "C" not null,
  message_id  text        collate "C" not null,
  received_at timestamptz not null default clock_timestamp(),
  primary key (source, message_id),
  constraint message_fits check (octet_length(source) between 1 and 200 and octet_length(message_id) between 1 and 500)
);

-- The inventory, written from the configuration by the daemon (R20), and what was really forgotten (R5).
create table outbox.operation (
  operation      text        collate "C" primary key,
  destination    text,
  effect         text,
  contract       text,
  meaning        text,
  owner          text,
  -- How long after the last send an absence proves something; null = never.
  absence        interval,
  -- Whether what was closed as not delivered holds its serial queue until a person lets go.
  hold_on_failure boolean    not null default false,
  -- The most bytes that a body may have; null = not known. Asked for bodies of more than 64 KiB.
  body_max       bigint,
  updated_at     timestamptz not null default clock_timestamp(),
  forgets_before timestamptz not null default '-infinity'
);

-- Requested cancellations: a row here, never a lock on a row in flight.
create table outbox.cancellation (
  action_id    uuid        primary key,
  requested_at timestamptz not null default clock_timestamp(),
  requested_by text        not null,
  reason       text        not null
);

-- Revoked authority; null = any.
create table outbox.revocation (
  revocation    bigint      generated always as identity primary key,
  tenant        text        collate "C",
  principal     text        collate "C",
  operation     text        collate "C",
  authority     text        collate "C",
  revoked_at    timestamptz not null default clock_timestamp(),
  revoked_by    text        not null,
  reason        text        not null,
  lifted_at     timestamptz,
  lifted_by     text,
  lifted_reason text,
  constraint lifted_by_someone check ((lifted_at is null) = (lifted_by is null)),
  constraint revokes_something check (coalesce(tenant, principal, operation, authority) is not null)
);
create index revocation_in_force on outbox.revocation (revocation) where lifted_at is null;
