-- Writes the inventory of operations (R20). What other daemons have written under other names stays.
--
-- $1 text[] operations, $2 text[] destinations, $3 text[] effects, $4 text[] contracts, $5 text[] meanings,
-- $6 text[] owners, $7 bigint[] after how many microseconds an absence proves something; null = never
-- $8 boolean[] whether a failure holds its serial queue, $9 bigint[] the most bytes that a body may have
insert into outbox.operation (operation, destination, effect, contract, meaning, owner, absence, hold_on_failure, body_max)
select operation, destination, effect, contract, meaning, owner, absence * interval '1 microsecond', hold_on_failure, body_max
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[],
    $8::boolean[], $9::bigint[])
  as t(operation, destination, effect, contract, meaning, owner, absence, hold_on_failure, body_max)
on conflict (operation) do update set
  destination = excluded.destination, effect = excluded.effect, contract = excluded.contract,
  meaning = excluded.meaning, owner = excluded.owner, absence = excluded.absence,
  hold_on_failure = excluded.hold_on_failure, body_max = excluded.body_max, updated_at = clock_timestamp()
