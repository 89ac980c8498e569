-- Which ledger this is, and on which cluster. Where that is not known yet, this cluster is remembered.
--
-- Rows: one; null = not readable. Raises OB421 where it is not the cluster or the timeline that is remembered.
select ledger_id, system_identifier, timeline from outbox.recognise()
