-- Whether a session is where the daemon was: asked in every new one, and through a pooler in every transaction.
--
-- $1 bigint system identifier, $2 int timeline, as outbox.recognise gave them; null = not readable, and not compared
-- Rows: one. Raises OB421 where it is not the same cluster and timeline.
select outbox.same_cluster($1, $2)
