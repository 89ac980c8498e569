//! Integration tests: a real PostgreSQL, real sockets, real processes, real signals. tests/README.md says which
//! promise and which case each keeps.

#![allow(missing_docs, clippy::unwrap_used, reason = "tests read as sentences, and a test may panic")]

mod support;

mod claim;
mod claim_fair;
mod claim_lapse;
mod claim_stops;
mod cli_choices;
mod cli_list;
mod cli_plans;
mod cli_prune;
mod cli_queue;
mod cli_rule;
mod cli_show;
mod compensation;
mod contracts_cli;
mod control;
mod daemon_answers;
mod daemon_breaker;
mod daemon_cancel;
mod daemon_config;
mod daemon_crash;
mod daemon_decisions;
mod daemon_delivery;
mod daemon_doubt;
mod daemon_drain;
mod daemon_edges;
mod daemon_http2;
mod daemon_log;
mod daemon_lookup;
mod daemon_narrow;
mod daemon_oauth;
#[cfg(feature = "test-hooks")]
mod daemon_panic;
mod daemon_poison;
mod daemon_queue;
mod daemon_rates;
mod daemon_reload;
mod daemon_retry;
mod daemon_rows;
mod daemon_sessions;
mod daemon_sign;
mod daemon_stops;
mod daemon_tls;
mod daemon_trouble;
mod daemon_waking;
mod database_tls;
mod demo;
mod destinations;
mod drill;
mod enqueue;
mod enqueue_refused;
mod failpoints;
mod guards;
mod late;
mod mark_cancel;
mod migrate;
mod orphans;
mod plans;
mod pooler;
mod presets;
mod prune;
mod queue_held;
mod queue_order;
mod queue_turns;
mod resolve;
mod retry;
mod roles;
mod settle;
mod settle_again;
mod soak;
mod status;
mod tidy;
mod wire;
