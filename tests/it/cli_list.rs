//! `outboxd list`, `review` and `status`: what they count and in which order, and what that costs.

use std::time::Duration;

use outboxd::core::evidence::Evidence;
use serde_json::Value;
use uuid::Uuid;

use crate::support::World;
use crate::support::cli::holds;
use crate::support::ledger::{NOTE, claim_one, settle, want};

fn ids(list: &Value) -> Vec<Uuid> {
    list["actions"].as_array().unwrap().iter().map(|a| a["action_id"].as_str().unwrap().parse().unwrap()).collect()
}

/// One action of each kind: held, to be resent, being asked about, in flight, succeeded, refused, pending.
async fn one_of_each(world: &World) -> [Uuid; 7] {
    let ledger = world.db.ledger("web-2#41c9");
    let mut made = Vec::new();
    for key in ["held", "resend", "lookup", "in flight", "done", "refused", "pending"] {
        let action = world.enqueue(key).await;
        made.push(action);
        if key != "pending" {
            let claimed = claim_one(&ledger, &want(NOTE)).await;
            match key {
                "in flight" => {}
                "done" => assert!(settle(&ledger, &claimed, Evidence::Accepted).await),
                "refused" => assert!(settle(&ledger, &claimed, Evidence::Rejected { replayed: false }).await),
                _ => assert!(settle(&ledger, &claimed, Evidence::NoAnswer).await),
            }
            let later = "due_at = now() + interval '1 hour'";
            let step = match key {
                "held" => "step = 'review', due_at = null, doubt_since = doubt_since - interval '12 min'".to_owned(),
                "lookup" => format!("step = 'lookup', {later}"),
                "done" | "refused" => continue,
                _ => later.to_owned(),
            };
            world.db.run(&format!("update outbox.delivery set {step} where action_id = '{action}'")).await;
        }
    }
    made.try_into().expect("seven")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_narrowed_by_every_filter_and_has_the_youngest_first() {
    let world = World::new().await;
    let [held, resend, lookup, in_flight, done, refused, pending] = one_of_each(&world).await;
    let cases: [(&[&str], &[Uuid]); 12] = [
        (&[], &[pending, refused, done, in_flight, lookup, resend, held]),
        (&["--state", "pending"], &[pending]),
        (&["--state", "outcome_unknown"], &[lookup, resend, held]),
        (&["--state", "succeeded"], &[done]),
        (&["--state", "terminal_failure"], &[refused]),
        (&["--label", "awaiting_resend"], &[resend]),
        (&["--label", "awaiting_reconciliation"], &[lookup]),
        (&["--label", "awaiting_review"], &[held]),
        (&["--review"], &[held]),
        (&["--operation", "nothing.else"], &[]),
        (&["--tenant", ""], &[pending, refused, done, in_flight, lookup, resend, held]),
        (&["--older-than", "1h"], &[]),
    ];
    for (arguments, expected) in cases {
        let arguments: Vec<&str> = ["list", "--json"].iter().chain(arguments).copied().collect();
        assert_eq!(ids(&world.says(&arguments).await.json()), expected, "{arguments:?}");
    }
    let page = world.says(&["list"]).await.done();
    holds(
        &page,
        &["action operation tenant retry key label age reason due", "awaiting_review", "timeout", "in 59 min"],
    );
    assert!(page.contains(&held.to_string()), "ids are whole: {page}");
    assert_eq!(world.says(&["list", "--state", "retryable_failure"]).await.done(), "no such action\n");
    assert_eq!(world.says(&["list", "--state", "failed"]).await.code, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_is_found_by_its_retry_key_whoever_it_belongs_to_and_after_it_was_pruned() {
    let world = World::new().await;
    let enqueue = |key: &str, operation: &str, tenant: &str| {
        let sql = format!("select action_id from outbox.enqueue('{operation}', '{{}}', '{key}', tenant => '{tenant}')");
        let db = &world.db;
        async move {
            // Ids are in the order of their milliseconds.
            tokio::time::sleep(Duration::from_millis(2)).await;
            db.one::<Uuid>(&sql, &[]).await
        }
    };
    let of_acme = enqueue("order-4711", NOTE, "acme").await;
    let of_birch = enqueue("order-4711", NOTE, "birch").await;
    let other = enqueue("order-4711", "refund.create", "birch").await;
    enqueue("order-4712", NOTE, "acme").await;
    let pruned = Uuid::from_u128(7);
    world
        .db
        .run(&format!(
            "insert into outbox.tombstone (action_id, tenant, principal, operation, retry_key, input_hash, state, created_at,
               closed_at) values ('{pruned}', 'old', '', 'note.withdraw', 'order-4711', sha256(''), 'succeeded', now(), now())"
        ))
        .await;
    let find = ["list", "--json", "--retry-key", "order-4711"];
    let found = async |more: &[&str]| ids(&world.says(&[&find[..], more].concat()).await.json());
    assert_eq!(found(&[]).await, [other, of_birch, of_acme, pruned]);
    assert_eq!(found(&["--tenant", "birch"]).await, [other, of_birch]);
    assert_eq!(found(&["--operation", NOTE]).await, [of_birch, of_acme]);
    assert_eq!(found(&["--limit", "1", "--after", &other.to_string()]).await, [of_birch]);
    let page = world.says(&["list", "--retry-key", "order-4711"]).await.done();
    holds(&page, &[&format!("{pruned} note.withdraw old order-4711 pruned")]);
    assert_eq!(world.says(&["list", "--retry-key", "order-4713"]).await.done(), "no such action\n");
    let said = world.says(&["show", "order-4711"]).await;
    assert!(said.code == 2 && said.err.contains("outboxd list prints them"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_without_its_role_is_told_which_to_grant_and_where() {
    let world = World::new().await;
    world.db.run("create role nobody_knows login").await;
    let as_nobody = world.config().replace(&world.db.url, &world.db.url_as("nobody_knows"));
    for (command, code) in [("status", 1), ("check", 1)] {
        let said = world.says_with(&as_nobody, &[command]).await;
        assert_eq!(said.code, code, "{said:?}");
        holds(&said.err, &["nobody_knows@", "SQLSTATE 42501", "outbox_operator", "outbox_dispatcher", "roles.sql"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_says_that_there_is_more_and_how_to_go_on() {
    let world = World::new().await;
    world.enqueue_many("n", 5).await;
    let (mut seen, mut after) = (Vec::new(), None::<String>);
    loop {
        let mut arguments = vec!["list", "--json", "--limit", "2", "--state", "pending"];
        if let Some(after) = &after {
            arguments.extend(["--after", after]);
        }
        let list = world.says(&arguments).await.json();
        seen.extend(ids(&list));
        assert_eq!(list["more"].as_bool(), Some(!list["next_after"].is_null()));
        match list["next_after"].as_str() {
            Some(next) => after = Some(next.to_owned()),
            None => break,
        }
    }
    let all: Vec<Uuid> =
        world.db.one("select array_agg(action_id order by action_id desc) from outbox.action", &[]).await;
    assert_eq!(seen, all);
    let page = world.says(&["list", "--limit", "2", "--state", "pending"]).await.done();
    let more = format!("2 shown; more: outboxd list --state pending --limit 2 --after {}", all[1]);
    holds(&page, &[&more]);
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_the_review_queue_has_the_longest_unknown_first_with_owner_and_promise() {
    let world = World::new().await;
    world.enqueue_many("n", 4).await;
    // The youngest action has been unknown for the longest time.
    world
        .db
        .run(
            "update outbox.delivery d set state = 'outcome_unknown', step = 'review', due_at = null, reason = 'timeout',
               first_sent_at = now(), last_sent_at = now(), doubt_since = now() - n * interval '1 hour'
             from (select action_id, row_number() over (order by action_id) n from outbox.action) a
             where a.action_id = d.action_id",
        )
        .await;
    let by_age: Vec<Uuid> =
        world.db.one("select array_agg(action_id order by doubt_since) from outbox.delivery", &[]).await;
    let list = world.says(&["review", "--json"]).await.json();
    assert_eq!(ids(&list), by_age);
    assert_eq!(list["actions"][0]["owner"], "tests");
    assert_eq!(list["actions"][0]["promises"], "key 24 h");
    assert_eq!(ids(&world.says(&["list", "--review", "--json"]).await.json()), by_age, "the same list");
    assert_eq!(ids(&world.says(&["review", "--json", "--older-than", "150min"]).await.json()), by_age[..2]);
    let first = by_age[0].to_string();
    assert_eq!(ids(&world.says(&["review", "--json", "--after", &first]).await.json()), by_age[1..]);
    let page = world.says(&["review", "--limit", "1"]).await.done();
    holds(&page, &["unknown for reason promised", "4 h timeout key 24 h", &format!("outboxd show {first}"), "--after"]);
    world.db.run("update outbox.delivery set state = 'terminal_failure', step = 'conclude', doubt_since = null, closed_at = now()").await;
    assert_eq!(world.says(&["review"]).await.done(), "nothing needs a person\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_counts_what_waits_by_operation_and_says_what_needs_a_person() {
    let world = World::new().await;
    one_of_each(&world).await;
    // As a daemon would have written it.
    world.db.run("insert into outbox.operation (operation) values ('note.publish')").await;
    let status = world.says(&["status", "--json"]).await.json();
    let note = &status["operations"][0];
    let figures =
        ["due", "scheduled", "retrying", "in_flight", "unknown", "unknown_resend", "unknown_lookup", "unknown_review"];
    let counted: Vec<i64> = figures.iter().map(|name| note[name].as_i64().unwrap()).collect();
    assert_eq!(counted, [1, 0, 0, 1, 3, 1, 1, 1]);
    assert!(note["oldest_unknown_ms"].as_i64().unwrap() >= 12 * 60 * 1000, "{note}");
    assert_eq!(status["destinations"][0]["in_flight"], 1);
    assert_eq!((status["workers_with_leases"].as_i64(), status["delivered_last_minute"].as_i64()), (Some(1), Some(1)));
    let page = world.says(&["status"]).await.done();
    holds(
        &page,
        &[
            "· no daemon ·",
            "note.publish 1 0 0 0 1 3 (1 1 1)",
            "12 min",
            "fake no daemon has it 1/64",
            "1 action needs a person: outboxd review",
        ],
    );
    assert!(!page.contains("postgres://"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_is_only_in_the_ledger_is_counted_too() {
    let world = World::new().await;
    world.db.enqueue("gone.away", "{}", "k").await;
    let page = world.says(&["status"]).await.done();
    holds(&page, &["gone.away (not configured) 1", "note.publish 0", "nothing needs a person"]);
}
