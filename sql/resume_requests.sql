-- What has been asked to be probed at once. Asked only by a daemon that has something paused.
--
-- $1 timestamptz the youngest request that is known
-- Rows: one for each destination; `age` in microseconds
select r.destination, r.requested_at,
  (extract(epoch from clock_timestamp() - r.requested_at) * 1000000)::bigint as age
from outbox.resume_request r where r.requested_at > $1
