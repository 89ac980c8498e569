-- Writes the inventory of operations (R20). What other daemons have written under other names stays.
--
-- $1 text[] operations, $2 text[] destinations, $3 text[] effects, $4 text[] contracts, $5 text[] meanings, $6 text[] owners
insert into outbox.operation (operation, destination, effect, contract, meaning, owner)
select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
on conflict (operation) do update set
  destination = excluded.destination, effect = excluded.effect, contract = excluded.contract,
  meaning = excluded.meaning, owner = excluded.owner, updated_at = clock_timestamp()
