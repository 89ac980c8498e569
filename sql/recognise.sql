-- Which ledger this is, and which cluster it was used on last. Where that is not known, this cluster is remembered.
--
-- $1 bigint system identifier of this cluster, $2 int its timeline; null = not readable
-- Rows: one; `system_identifier` and `timeline` as remembered.
select ledger_id, system_identifier, timeline from outbox.recognise($1::bigint, $2::int)
