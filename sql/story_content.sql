-- What is in an action: its params, the names of its headers, and of its body only size and hash, so that looking at
-- an action never costs what it weighs.
--
-- $1 uuid action
-- Rows: one or none. By the primary key. Only where story_action.sql says that this role may.
select a.params::text as params, array(select json_object_keys(a.headers)) as header_names,
  octet_length(a.body)::bigint as body_bytes, encode(sha256(a.body), 'hex') as body_sha256
from outbox.action a where a.action_id = $1
