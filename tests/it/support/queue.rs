//! Serial queues, moved on as the dispatcher does it.

use outboxd::core::evidence::Evidence;
use outboxd::ledger::{Claimed, Ledger, Promoted};
use uuid::Uuid;

use super::Database;
use super::ledger::{NOTE, claim, settle, want};

/// Enqueues a note under a retry key, in the queue of an ordering key.
pub async fn queued(db: &Database, key: &str, ordering_key: &str) -> Uuid {
    db.one("select action_id from outbox.enqueue($1, '{}', $2, ordering_key => $3)", &[&NOTE, &key, &ordering_key])
        .await
}

/// All that there is to see to.
pub async fn promote(ledger: &Ledger) -> Promoted {
    let mut all = Promoted::default();
    loop {
        let some = ledger.promote().await.expect("turns");
        if some.moved == 0 {
            return all;
        }
        all = Promoted { moved: all.moved + some.moved, turns: all.turns + some.turns };
    }
}

/// What may be sent now, when all turns are given.
pub async fn take(ledger: &Ledger) -> Vec<Claimed> {
    promote(ledger).await;
    claim(ledger, &want(NOTE)).await
}

/// The one action that may be sent now, or in a moment: a session that was refused something lets go of its rows just
/// after it has said so.
pub async fn take_one(ledger: &Ledger) -> Claimed {
    let wait = async {
        loop {
            let mut taken = take(ledger).await;
            assert!(taken.len() <= 1, "more than one has its turn: {taken:?}");
            if let Some(one) = taken.pop() {
                return one;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(super::world::SOON, wait).await.expect("one that has its turn")
}

/// Sends the one that has its turn, and it comes to this.
pub async fn send(ledger: &Ledger, evidence: Evidence) -> Uuid {
    let claimed = take_one(ledger).await;
    assert!(settle(ledger, &claimed, evidence).await);
    claimed.intent.id.0
}

/// Whether nothing may be sent now.
pub async fn is_quiet(ledger: &Ledger) -> bool {
    take(ledger).await.is_empty()
}

/// What an action is for its queue: arrived, parked, turn, holds, left, out (of it) or none.
pub async fn role(db: &Database, action: Uuid) -> String {
    let sql = "select case when lane is null then 'none' when turn and holds then 'holds'
        when turn and closed_at is null then 'turn' when turn then 'left' when closed_at is not null then 'out'
        when due_at is not null then 'arrived' else 'parked' end from outbox.delivery where action_id = $1";
    db.one(sql, &[&action]).await
}
