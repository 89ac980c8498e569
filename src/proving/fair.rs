//! Whether one tenant's flood costs others anything: what a claim costs, and how many claims pass until a tenant with a
//! single action has had its turn.

use std::time::Duration;

use serde::Serialize;

use super::cluster::{Cluster, ClusterOptions};
use super::session;
use crate::clock::Uptime;
use crate::core::target::Secret;
use crate::core::terms::Pins;
use crate::ledger::{self, Ledger, Want};

type Fault = Box<dyn std::error::Error + Send + Sync>;

/// Tenants with one action each.
const SMALL: i64 = 50;
/// Slots of a claim.
const FREE: u32 = 64;
/// Claims whose cost is measured.
const CLAIMS: usize = 40;
const OPERATION: &str = "bench.fair";

/// What was measured beside a flood.
#[derive(Serialize, Clone, Copy, Debug)]
pub struct Fair {
    /// Due actions of the one tenant.
    pub flood: i64,
    /// A claim of 64 slots, from the question to the answer, half of them at most; milliseconds.
    pub claim_p50_ms: f64,
    /// All but a tenth of them, milliseconds.
    pub claim_p90_ms: f64,
    /// Claims until each of 50 tenants with a single action, committed after the flood, had its turn.
    pub claims_until_all_had_theirs: usize,
}

/// Measures beside floods of these sizes.
pub async fn fair(floods: &[i64]) -> Result<Vec<Fair>, Fault> {
    let mut measured = Vec::new();
    for flood in floods {
        measured.push(beside(*flood).await?);
    }
    Ok(measured)
}

async fn beside(flood: i64) -> Result<Fair, Fault> {
    let cluster = Cluster::start(ClusterOptions::default())?;
    let url = cluster.url(cluster.superuser(), "postgres");
    ledger::migrate(&Secret::new(url.clone())).await?;
    let client = session::connect(&url).await?;
    let enqueue =
        "select outbox.enqueue($1, '{}', n::text, tenant => $3 || case when $3 = 'small' then n::text else '' end)
        from generate_series(1, $2::bigint) n";
    client.execute(enqueue, &[&OPERATION, &flood, &"flood"]).await?;
    client.execute(enqueue, &[&OPERATION, &SMALL, &"small"]).await?;
    client.batch_execute("vacuum analyze").await?;
    let ledger = ledger::connect(&Secret::new(url), 2, "bench")?;
    let mut walk = Walk { ledger, after: String::new(), ms: Vec::new() };
    let mut small = 0;
    let mut until_all = 0;
    // These are the ones that give the small tenants theirs; plans and caches are warm after them.
    for claim in 1..=CLAIMS {
        small += walk.claim().await?;
        if small >= SMALL && until_all == 0 {
            until_all = claim;
        }
    }
    walk.ms.clear();
    for _ in 0..CLAIMS {
        walk.claim().await?;
    }
    walk.ms.sort_by(f64::total_cmp);
    Ok(Fair {
        flood,
        claim_p50_ms: hundredths(walk.ms[CLAIMS / 2]),
        claim_p90_ms: hundredths(walk.ms[CLAIMS * 9 / 10]),
        claims_until_all_had_theirs: until_all,
    })
}

/// Claims, one after the other, each from where the last one stopped.
struct Walk {
    ledger: Ledger,
    after: String,
    ms: Vec<f64>,
}

impl Walk {
    /// Returns how many actions of small tenants it took.
    async fn claim(&mut self) -> Result<i64, Fault> {
        let want = Want {
            operation: OPERATION.to_owned(),
            asks: false,
            free: FREE,
            timeout: Duration::from_secs(600),
            margin: Duration::from_secs(5),
            after: self.after.clone(),
            pins: Pins([0; 16]),
            marks: false,
            since: None,
            tenants: None,
        };
        let begun = Uptime::now();
        let claims = self.ledger.claim(&[want]).await?;
        self.ms.push(Uptime::now().since(begun).as_secs_f64() * 1000.0);
        if let Some(next) = claims.next_after.first() {
            self.after.clone_from(&next.after);
        }
        let small = claims.claimed.iter().filter(|claimed| claimed.intent.tenant.starts_with("small")).count();
        Ok(i64::try_from(small)?)
    }
}

fn hundredths(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}
