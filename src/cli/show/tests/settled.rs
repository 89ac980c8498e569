//! Before anything was sent, and after everything is settled.

use std::time::Duration;

use super::fixture::*;
use crate::cli::print::screen::Screen;
use crate::cli::show::View;
use crate::cli::show::json;
use crate::cli::show::page::{grave, page};
use crate::core::action::{ActionId, State};
use crate::ledger::{Entry, EntryKind, Inventory, Linked, Revocation, Story, Tombstone};

#[test]
fn a_committed_action_is_due_and_can_be_cancelled() {
    let page = text(&committed(), Some(&keyed(86_400)));
    says(
        &page,
        &[
            "committed, delivery pending",
            "Nothing has been sent yet, as far as is recorded. It has been due for 15 min; no worker has taken it yet.",
            "outboxd cancel 0197c0de",
        ],
        &["resolve", "promises"],
    );
}

#[test]
fn what_is_due_and_what_keeps_it_from_being_sent_stand_together() {
    let told = |story: &Story| {
        let obstacle = Some("Destination announcements is silent.".to_owned());
        let operation = keyed(86_400);
        let view = View { story, operation: Some(&operation), notes: &[], config: String::new(), hint: None, obstacle };
        page(&view, Screen::plain()).contains("is silent.")
    };
    let mut story = committed();
    assert!(told(&story), "due for 15 min");
    story.standing.due_at = Some(NOW.plus(Duration::from_secs(3)));
    assert!(!told(&story), "not due yet");
    assert!(!told(&closed(committed(), State::Succeeded, None, 693)), "nothing is to be sent");
}

#[test]
fn an_open_action_that_nobody_here_would_send_says_so() {
    let mut story = committed();
    story.inventory = None;
    says(
        &text(&story, None),
        &["No daemon has ever had announcement.deliver, and this configuration does not either: if the name is wrong"],
        &[],
    );
    let known = Inventory { destination: Some("announcements".into()), contract: None, owner: None, absence: None };
    story.inventory = Some(known);
    says(&text(&story, None), &["only a daemon whose file has it sends this."], &[]);
    says(&text(&story, Some(&keyed(86_400))), &[], &["This configuration"]);
}

#[test]
fn r10_succeeded_after_doubt_says_how_long_it_was_unknown() {
    let mut story = in_doubt(crate::core::action::Step::Send, "awaiting_resend", "timeout", None);
    let mut resent = send(2, 700, "accepted", "succeeded");
    resent.status = Some(201);
    resent.receipt = Some("a-77".into());
    story.history.push(resent);
    story.standing.receipt = Some("a-77".into());
    let page = text(&closed(story, State::Succeeded, None, 693), Some(&keyed(86_400)));
    says(
        &page,
        &[
            "Sent twice, first 13 min ago, last 11 min ago. The destination confirmed it (HTTP 201), receipt a-77.",
            "It took effect: that was settled at 10:32:34 UTC, receipt a-77. Its outcome had been unknown for 1 min by then.",
            "attempt 2 sent",
            "confirmed HTTP 201, receipt a-77",
        ],
        &["may or may not", "You may", "promises"],
    );
}

#[test]
fn a_terminal_rejection_says_what_the_destination_said() {
    let mut story = committed();
    let mut refused = send(1, 700, "rejected", "terminal_failure");
    refused.status = Some(422);
    refused.detail = Some("422 Unprocessable Content: {\"error\":\"no such channel\"}".into());
    story.history.push(refused);
    let page = text(&closed(story, State::TerminalFailure, Some("rejected"), 693), Some(&keyed(86_400)));
    says(
        &page,
        &[
            "did not happen, closed",
            "The destination refused it for good (HTTP 422).",
            "It did not take effect and will not be tried again: the destination refused it for good.",
            "refused for good 422 Unprocessable Content: {\"error\":\"no such channel\"}",
            "outboxd retry 0197c0de",
        ],
        &["unknown", "HTTP 422, 422"],
    );
}

#[test]
fn r22_a_cancelled_action_says_by_whom() {
    let mut story = committed();
    story.cancellation = Some(note(60, "ann", "wrong channel"));
    let page = text(&story, Some(&keyed(86_400)));
    says(
        &page,
        &["stopped, nothing will be sent", "ann asked 1 min ago to cancel it: wrong channel."],
        &["outboxd cancel", "may have taken effect"],
    );
    let page = text(&closed(story, State::TerminalFailure, Some("cancelled"), 50), Some(&keyed(86_400)));
    says(
        &page,
        &["It did not take effect and will not be tried again: it was cancelled.", "by ann: wrong channel"],
        &[],
    );
}

#[test]
fn r22_a_revocation_stands_in_the_history_with_its_end() {
    let mut story = committed();
    story.revocations =
        vec![Revocation { number: 3, made: note(90, "bob", "left"), lifted: Some(note(30, "eve", "came back")) }];
    let page = text(&story, None);
    says(
        &page,
        &["authority revoked revocation 3 by bob: left", "revocation lifted revocation 3 by eve: came back"],
        &["has revoked"],
    );
    story.revocations[0].lifted = None;
    says(&text(&story, None), &["bob has revoked its authority 1 min ago (revocation 3): left."], &[]);
}

#[test]
fn r25_a_contradicted_end_is_shouted() {
    let mut late = send(1, 785, "accepted", "contradicts");
    late.kind = EntryKind::Late;
    late.receipt = Some("a-77".into());
    late.finished_at = ago(100);
    let mut story = committed();
    story.history = vec![send(1, 785, "lapsed", "outcome_unknown"), late];
    let mut story = closed(story, State::TerminalFailure, Some("absent"), 400);
    story.standing.took_effect = None;
    let page = text(&story, Some(&keyed(86_400)));
    says(
        &page,
        &[
            "closed as not done, CONTRADICTED",
            "CONTRADICTED: it was closed as not done (absent), and 5 min later",
            "(receipt a-77). It probably took effect; a person must look.",
            "late: confirmed CONTRADICTS how it was closed",
            "You may decide",
            "It stays closed; what is known of it is recorded.",
        ],
        &["It did not take effect", "outboxd retry", "--send-again"],
    );
    let mut decision = other(EntryKind::Decision, 50, "happened", "terminal_failure");
    decision.decided_by = Some("ann".into());
    story.history.push(decision);
    story.standing.took_effect = Some(true);
    let page = text(&story, Some(&keyed(86_400)));
    says(&page, &["closed as not done, but it happened", "and ann has recorded that it took effect."], &["You may"]);
}

#[test]
fn a_neutralised_action_did_not_happen_and_its_key_is_spent() {
    let mut story = in_doubt(crate::core::action::Step::Cancel, "awaiting_reconciliation", "timeout", None);
    story.standing.cancel_sent_at = Some(ago(110));
    story.history.push(other(EntryKind::Cancel, 100, "neutralised", "terminal_failure"));
    let page = text(&closed(story, State::TerminalFailure, Some("neutralised"), 93), Some(&keyed(86_400)));
    says(
        &page,
        &[
            "The destination confirmed that it is cancelled by its key.",
            "will not be tried again: it was cancelled at the destination by its key.",
            "cancel by key: confirmed proof that nothing happened, worker",
            "Try it again. Not possible: a cancel by its key has been sent",
        ],
        &["outboxd retry"],
    );
}

#[test]
fn r19_the_absence_that_proved_it_is_told_from_those_that_did_not() {
    let mut story = in_doubt(crate::core::action::Step::Lookup, "awaiting_reconciliation", "timeout", None);
    for seconds in [600, 500, 400, 300, 200] {
        story.history.push(other(EntryKind::Lookup, seconds, "absent", "outcome_unknown"));
    }
    story.history.push(other(EntryKind::Lookup, 100, "absent", "pending"));
    story.history.push(send(2, 90, "accepted", "succeeded"));
    let page = text(&closed(story, State::Succeeded, None, 83), Some(&asked(60)));
    says(
        &page,
        &[
            "Sent twice,",
            "10:34:07.000 asked: not found proves nothing yet",
            "3 more alike",
            "10:42:27.000 asked: not found proof that nothing happened, so it is sent anew",
        ],
        &["had been unknown"],
    );
}

#[test]
fn r21_a_decision_says_who_and_why() {
    let mut decision = other(EntryKind::Decision, 50, "happened", "succeeded");
    decision.decided_by = Some("ann".into());
    decision.detail = Some("saw it in the channel".into());
    decision.receipt = Some("a-77".into());
    let mut story = held();
    story.history.push(decision);
    story.standing.receipt = Some("a-77".into());
    let page = text(&closed(story, State::Succeeded, None, 50), Some(&silent()));
    says(
        &page,
        &[
            "ann has recorded at 10:43:17 UTC that it happened, receipt a-77.",
            "decided: happened by ann: saw it in the channel (receipt a-77)",
        ],
        &["that was settled"],
    );
}

#[test]
fn what_never_left_is_no_send() {
    let mut story = committed();
    let mut unsent = send(0, 700, "not_sent", "pending");
    unsent.detail = Some("connection refused".into());
    story.history = vec![unsent.clone(), Entry { attempt: attempt(2), ..unsent }];
    story.standing.reason = Some("connection_refused".into());
    story.standing.due_at = Some(NOW.plus(Duration::from_secs(3)));
    let page = text(&story, Some(&keyed(86_400)));
    says(
        &page,
        &[
            "Nothing has been sent; twice it was tried and no byte left.",
            "It is to be sent in 3 s. Before that: the destination refused the connection.",
            "not sent worker web-2#41c9, fence 0, connection refused",
        ],
        &["attempt 1"],
    );
}

#[test]
fn r15_a_throttled_action_says_when_it_is_tried_again() {
    let mut story = committed();
    story.history.push(send(1, 700, "deferred", "retryable_failure"));
    story.standing.state = State::RetryableFailure;
    story.standing.label = "retryable_failure".into();
    story.standing.reason = Some("throttled".into());
    story.standing.attempts = 1;
    story.standing.due_at = Some(NOW.plus(Duration::from_secs(30)));
    let parts =
        ["Not done yet: the destination asked to slow down; the next attempt is in 30 s, number 2 of at most 5."];
    says(&text(&story, Some(&keyed(86_400))), &parts, &[]);
}

#[test]
fn r7_a_compensation_and_its_original_name_each_other() {
    let linked = |label: &str| Linked {
        id: ActionId(attempt(77)),
        operation: Some("refund.create".into()),
        label: Some(label.into()),
        receipt: Some("r-1".into()),
        took_effect: None,
    };
    let mut story = committed();
    story.compensates = Some(linked("awaiting_review"));
    story.standing.due_at = Some(NOW.plus(Duration::from_secs(5)));
    let id = attempt(77).to_string();
    let waits = format!("It waits until {id}, which it compensates, is known to have happened.");
    let link = format!("compensates {id} refund.create, awaiting review, receipt r-1");
    says(&text(&story, None), &[&waits, &link, &format!("compensates {id}")], &[]);
    let mut original = held();
    original.compensated_by = vec![linked("pending"), linked("pending")];
    says(&text(&original, None), &[&format!("compensated by {id} refund.create, pending")], &[]);
}

#[test]
fn a_history_of_several_days_names_each_day() {
    let mut story = committed();
    story.committed.created_at = ago(2 * 86_400);
    story.history.push(send(1, 86_400, "deferred", "retryable_failure"));
    let page = text(&story, None);
    for day in ["2026-11-27\n  10:44:07.000  committed", "2026-11-28\n  10:44:07.000  attempt 1 sent"] {
        assert!(page.contains(day), "{page}");
    }
}

#[test]
fn r5_a_pruned_action_has_its_tombstone() {
    let stone = Tombstone {
        now: NOW,
        id: committed().committed.id,
        tenant: "acme".into(),
        principal: String::new(),
        operation: "announcement.deliver".into(),
        retry_key: "publication-17".into(),
        state: "succeeded".into(),
        receipt: Some("a-77".into()),
        created_at: ago(86_400 * 40),
        closed_at: ago(86_400 * 40 - 7),
    };
    let page = grave(&stone, Some(Duration::from_secs(86_400 * 400)), Screen::plain());
    says(
        &page,
        &[
            "succeeded, pruned",
            "39 days ago: it took effect; receipt a-77.",
            "Its retry key is remembered until about 2027-11-24 10:44:14 UTC",
        ],
        &[],
    );
}

#[test]
fn the_same_story_for_programs() {
    let view = View {
        story: &held(),
        operation: Some(&silent()),
        notes: &[],
        config: "--config x.toml".into(),
        hint: None,
        obstacle: None,
    };
    let value = json::story(&view);
    assert_eq!(value["standing"]["label"], "awaiting_review");
    assert_eq!(value["history"][0]["evidence"], "no_answer");
    assert_eq!(value["committed"]["created_at"], "2026-11-29T10:29:07.000000Z");
    assert_eq!(value["choices"].as_array().map(Vec::len), Some(3));
    let command = value["choices"][0]["command"].as_str().expect("a command");
    assert!(command.ends_with("--by YOU --reason WHY --config x.toml"), "{command}");
}
