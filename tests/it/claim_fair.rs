//! Whose rows a claim takes: each operation within its slots, each tenant its share.

use std::collections::BTreeMap;

use outboxd::core::action::Step;
use outboxd::ledger::{Claims, Ledger, Want};

use crate::support::Database;
use crate::support::ledger::{NOTE, asking, claim, want};

fn by_tenant(claims: &Claims) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for claimed in &claims.claimed {
        *counts.entry(claimed.intent.tenant.as_str()).or_default() += 1;
    }
    counts
}

async fn enqueue(db: &Database, tenant: &str, n: i32) {
    let sql = "select outbox.enqueue('note.publish', '{}', $1 || g, tenant => $1) from generate_series(1, $2) g";
    db.client.query(sql, &[&tenant, &n]).await.unwrap();
}

async fn claims(ledger: &Ledger, want: &Want) -> Claims {
    ledger.claim(std::slice::from_ref(want)).await.unwrap()
}

#[tokio::test]
async fn r24_free_slots_are_respected_per_operation_in_one_claim() {
    let db = Database::new().await;
    for operation in ["a", "b", "c"] {
        for key in 0..5 {
            db.enqueue(operation, "{}", &key.to_string()).await;
        }
    }
    let wants = [Want { free: 2, ..want("a") }, Want { free: 10, ..want("b") }, Want { free: 0, ..want("c") }];
    let claims = db.ledger("w").claim(&wants).await.unwrap();
    let of = |name| claims.claimed.iter().filter(|c| c.intent.operation == name).count();
    assert_eq!((of("a"), of("b"), of("c")), (2, 5, 0));
}

/// So that reconciling doesn't starve sending, nor the reverse.
#[tokio::test]
async fn r19_rows_that_ask_have_slots_of_their_own_beside_those_that_send() {
    let db = Database::new().await;
    enqueue(&db, "t", 30).await;
    db.run(
        "update outbox.delivery d set state = 'outcome_unknown', step = x.step, doubt_since = now(), due_at = x.due
         from (select action_id, n, case n % 2 when 0 then 'lookup' else 'cancel' end as step,
             now() - interval '1 h' as due
           from (select action_id, row_number() over () as n from outbox.action) a where n <= 20) x
         where x.action_id = d.action_id",
    )
    .await;
    let ledger = db.ledger("w");
    let wants = [Want { free: 6, ..want(NOTE) }, Want { free: 3, ..asking(want(NOTE)) }];
    for want in &wants {
        let steps: Vec<Step> = claims(&ledger, want).await.claimed.iter().map(|c| c.row.step).collect();
        assert_eq!(steps.len(), want.free as usize);
        assert!(steps.iter().all(|step| (*step != Step::Send) == want.asks), "{steps:?}");
    }
    let both = ledger.claim(&wants).await.unwrap();
    let of = |asked| both.claimed.iter().filter(|c| c.asked == asked).count();
    assert_eq!((of(false), of(true)), (4, 3), "four are left to send");
    let places: Vec<bool> = both.next_after.iter().map(|next| next.asks).collect();
    assert_eq!((places.len(), places.contains(&true), places.contains(&false)), (2, true, true));
}

#[tokio::test]
async fn r24_each_operation_has_a_lease_of_its_own() {
    let db = Database::new().await;
    db.enqueue("a", "{}", "k").await;
    db.enqueue("b", "{}", "k").await;
    let short = Want { timeout: std::time::Duration::from_secs(7), ..want("b") };
    db.ledger("w").claim(&[want("a"), short]).await.unwrap();
    let leases = "select string_agg(extract(epoch from due_at - updated_at)::int::text, ' ' order by operation)
        from outbox.delivery";
    assert_eq!(db.one::<String>(leases, &[]).await, "120 67");
}

#[tokio::test]
async fn b41_one_tenants_backlog_does_not_keep_another_tenant_waiting() {
    let db = Database::new().await;
    enqueue(&db, "backlog", 3000).await;
    enqueue(&db, "small", 1).await;
    let claims = claims(&db.ledger("w"), &want(NOTE)).await;
    assert_eq!(by_tenant(&claims), BTreeMap::from([("backlog", 5), ("small", 1)]));
}

#[tokio::test]
async fn b41_with_fewer_slots_than_tenants_the_walk_goes_on_where_it_stopped() {
    let db = Database::new().await;
    for tenant in ["a", "b", "c", "d", "e"] {
        enqueue(&db, tenant, 10).await;
    }
    let ledger = db.ledger("w");
    let mut want = Want { free: 2, ..want(NOTE) };
    let mut seen = Vec::new();
    for _ in 0..3 {
        let claims = claims(&ledger, &want).await;
        seen.push(by_tenant(&claims).keys().map(|t| (*t).to_owned()).collect::<Vec<_>>().join(""));
        want.after.clone_from(&claims.next_after[0].after);
    }
    assert_eq!(seen, ["ab", "cd", "e"]);
    assert_eq!(want.after, "", "the walk is over and starts again");
}

#[tokio::test]
async fn b41_a_tenant_whose_only_row_is_locked_does_not_stop_the_walk() {
    let db = Database::new().await;
    enqueue(&db, "a", 1).await;
    enqueue(&db, "b", 1).await;
    let holder = db.session().await;
    holder.batch_execute("begin; select from outbox.delivery where tenant = 'a' for update").await.unwrap();
    let ledger = db.ledger("w");
    let mut want = Want { free: 1, ..want(NOTE) };
    let first = claims(&ledger, &want).await;
    assert!(first.claimed.is_empty());
    want.after.clone_from(&first.next_after[0].after);
    assert_eq!(by_tenant(&claims(&ledger, &want).await), BTreeMap::from([("b", 1)]));
}

#[tokio::test]
async fn b41_thousands_of_tenants_are_walked_a_bounded_number_at_a_time() {
    let db = Database::new().await;
    db.run(
        "select outbox.enqueue('note.publish', '{}', 'k', tenant => lpad(n::text, 4, '0'),
        not_before => case when n = 900 then now() else now() + interval '1 h' end) from generate_series(1, 1000) n",
    )
    .await;
    let ledger = db.ledger("w");
    let mut want = want(NOTE);
    let mut walks = 0;
    loop {
        let claims = claims(&ledger, &want).await;
        walks += 1;
        if !claims.claimed.is_empty() {
            break;
        }
        want.after.clone_from(&claims.next_after[0].after);
        assert!(!want.after.is_empty() && walks < 10, "the row is never reached");
    }
    assert_eq!(walks, 4, "256 tenants each");
}

#[tokio::test]
async fn r3_tenants_that_begin_alike_are_each_claimed() {
    let db = Database::new().await;
    let tenants = ["", "a", "a\u{1}", "a\u{1}b", "ab", "\u{e4}", "\u{10ffff}"];
    for tenant in tenants {
        enqueue(&db, tenant, 1).await;
    }
    let ledger = db.ledger("w");
    let mut want = Want { free: 1, ..want(NOTE) };
    let mut seen = Vec::new();
    for _ in tenants {
        let claims = claims(&ledger, &want).await;
        seen.extend(claims.claimed.iter().map(|c| c.intent.tenant.clone()));
        want.after.clone_from(&claims.next_after[0].after);
    }
    assert_eq!(seen, tenants);
    assert!(claim(&ledger, &want).await.is_empty());
}
