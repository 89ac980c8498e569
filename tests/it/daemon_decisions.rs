//! What becomes of an action once a person has decided.

use outboxd::proving::fake::Behaviour;
use uuid::Uuid;

use crate::support::World;
use crate::support::world::{NOTHING_PROMISED, SOON, keyed};

/// An action that a destination which promises nothing has taken without an answer.
async fn unknown(world: &mut World) -> Uuid {
    world.contract = NOTHING_PROMISED.into();
    world.operation = "effect = \"unreconcilable\"\ntimeout = \"500ms\"".into();
    world.fake.behave(|_, _| Behaviour::accept().without_dedupe().closing());
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    world.until(action, "awaiting_review").await;
    drop(daemon);
    action
}

async fn last_decision(world: &World, action: Uuid) -> (String, String) {
    let sql = "select decided_by, detail from outbox.attempt where action_id = $1 and kind = 'decision'
        order by finished_at desc limit 1";
    let row = world.db.client.query_one(sql, &[&action]).await.expect("an audit line");
    (row.get(0), row.get(1))
}

#[tokio::test(flavor = "multi_thread")]
async fn b65_r21_what_was_closed_as_not_done_really_runs_again_with_a_new_budget_and_its_key() {
    let mut world = World::new().await;
    world.operation = keyed("1s", "attempts_max = 2");
    world.fake.behave(|_, before| if before == 0 { Behaviour::refuse(422) } else { Behaviour::accept() });
    let action = world.enqueue("n-1").await;
    let daemon = world.daemon().await;
    world.until(action, "terminal_failure").await;
    let said = world.says(&["retry", &action.to_string(), "--by", "ada", "--reason", "the note was fixed there"]).await;
    said.done();
    world.until(action, "succeeded").await;
    let seen = world.seen_of(action);
    assert_eq!((seen.len(), &seen[0].key), (2, &seen[1].key), "R17: the same key");
    assert_eq!(world.standing(action).await.attempts, 1, "counted anew");
    let (by, why) = last_decision(&world, action).await;
    assert!(by == "ada" && why.contains("the note was fixed there"), "{by}: {why}");
    drop(daemon);
}

#[tokio::test(flavor = "multi_thread")]
async fn b65_r21_an_unknown_outcome_is_sent_again_only_by_an_explicit_decision() {
    let mut world = World::new().await;
    let action = unknown(&mut world).await;
    let id = action.to_string();
    let who = ["--by", "ada", "--reason", "twice does no harm"];
    world.says(&[&["retry", &id], &who[..]].concat()).await.refused();
    let undecided = world.says(&[&["resolve", &id], &who[..]].concat()).await;
    assert_eq!(undecided.code, 2, "no decision is none: {undecided:?}");
    let _daemon = world.daemon().await;
    let other = world.enqueue("n-2").await;
    world.until(other, "awaiting_review").await;
    assert_eq!(world.seen_of(action).len(), 1, "nothing left without the decision");

    world.fake.behave(|_, _| Behaviour::accept().without_dedupe());
    world.says(&[&["resolve", &id, "--send-again"], &who[..]].concat()).await.done();
    world.until(action, "succeeded").await;
    assert_eq!(world.seen_of(action).len(), 2);
    assert_eq!(last_decision(&world, action).await.0, "ada");
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_a_second_send_that_is_lost_too_comes_back_to_the_person() {
    let mut world = World::new().await;
    let action = unknown(&mut world).await;
    let id = action.to_string();
    let _daemon = world.daemon().await;
    world.says(&["resolve", &id, "--send-again", "--by", "ada", "--reason", "once more"]).await.done();
    world.fake.wait_seen(2).await.expect("sent again");
    world.until(action, "awaiting_review").await;
    assert_eq!(world.seen_of(action).len(), 2, "the decision lets one send pass");
}

#[tokio::test(flavor = "multi_thread")]
async fn r21_happened_and_did_not_happen_close_it_and_nothing_is_sent() {
    for (flags, state) in
        [(&["--happened", "--receipt", "ch_1"][..], "succeeded"), (&["--did-not-happen"][..], "terminal_failure")]
    {
        let mut world = World::new().await;
        let action = unknown(&mut world).await;
        let id = action.to_string();
        let who = ["--by", "ada", "--reason", "looked at their dashboard"];
        world.says(&[&["resolve", &id], flags, &who[..]].concat()).await.done();
        let daemon = world.daemon().await;
        daemon.logged("stats", SOON).await.expect("it runs");
        let standing = world.standing(action).await;
        assert_eq!((standing.state.as_str(), world.seen_of(action).len()), (state, 1));
        assert_eq!(standing.receipt.as_deref(), (state == "succeeded").then_some("ch_1"));
    }
}
