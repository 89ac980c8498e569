//! While the outcome is unknown: what is known, what comes next, what may be decided.

use std::time::Duration;

use uuid::Uuid;

use super::super::View;
use super::super::page::page;
use super::fixture::*;
use crate::cli::print::screen::Screen;
use crate::core::action::{AttemptId, State, Step};
use crate::core::contract::{Contract, Effect};
use crate::core::row::{Doubt, SentUnder};
use crate::core::terms::Pins;
use crate::ledger::{Content, EntryKind, Inventory};

const ID: &str = "0197c0de-6a1e-7c3b-9f0e-2d5d1c1f7a55";

#[test]
fn r21_held_after_nothing_was_promised() {
    let page = text(&held(), Some(&silent()));
    let expected = "\
announcement.deliver → announcements                                   outcome unknown, needs review
acme / release-bot    retry key publication-17    action 0197c0de-6a1e-7c3b-9f0e-2d5d1c1f7a55
key at the destination 0197c0de-6a1e-7c3b-9f0e-2d5d1c1f7a55

What is known
  Sent once, 13 min ago. No answer came: connection closed, after 512 bytes of the request and 0 of
  an answer.
  The destination promises nothing for this operation (contract http.post): no key memory, no
  lookup.
  So it may or may not have taken effect, and sending it again could make it happen twice.
  Unknown for 12 min (since 10:31:09 UTC). It is held for a person: nothing that is promised can
  settle it.

History (UTC)
  10:29:07.000  committed       workflow rel-88, event evt-9
  10:31:02.000  attempt 1 sent  worker web-2#41c9, fence 1, deadline 10:31:12
  10:31:09.000  no answer       connection closed, after 512 bytes of the request and 0 of an answer

You may decide
  It happened: you saw the effect at the destination.
    outboxd resolve 0197c0de-6a1e-7c3b-9f0e-2d5d1c1f7a55 --happened --receipt RECEIPT --by YOU --reason WHY
    If that is wrong, it never happens: nothing is sent any more.
  It did not happen: you made sure that it is not there.
    outboxd resolve 0197c0de-6a1e-7c3b-9f0e-2d5d1c1f7a55 --did-not-happen --by YOU --reason WHY
    If that is wrong, it has happened although the ledger says that it has not. With --retry it is
    sent anew and, if that is wrong, happens twice.
  Send it once more, whatever happened.
    outboxd resolve 0197c0de-6a1e-7c3b-9f0e-2d5d1c1f7a55 --send-again --by YOU --reason WHY
    You accept that it may happen twice.

Body 38 bytes, sha256 9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c9f2c; show it with --body
";
    assert_eq!(page, expected, "\n{page}");
}

#[test]
fn r18_awaiting_a_resend_says_when_and_until_when_a_repeat_is_recognised() {
    let due = Some(NOW.plus(Duration::from_secs(3)));
    let page = text(&in_doubt(Step::Send, "awaiting_resend", "timeout", due), Some(&keyed(86_400)));
    says(
        &page,
        &[
            "outcome unknown, to be sent again",
            "a repeat under the same key gives the first result, for 24 h from the first send on.",
            "The same request is sent again under the same key in 3 s.",
            "A repeat is recognised until 2026-11-30 10:30:02 UTC, for 23 h more.",
            "You may decide before outboxd does",
            "It goes under the same key, which the destination promises to recognise until",
        ],
        &["twice.", "held for a person"],
    );
}

#[test]
fn r18_a_closed_window_is_said_and_makes_a_repeat_a_risk() {
    let page = text(&in_doubt(Step::Review, "awaiting_review", "key_window_closed", None), Some(&keyed(600)));
    says(
        &page,
        &[
            "sending it again could make it happen twice",
            "The time in which a repeat is sure to be recognised ended 4 min ago.",
            "It is held for a person: the destination may have forgotten the key.",
            "You accept that it may happen twice.",
        ],
        &["promises to recognise"],
    );
}

#[test]
fn r19_awaiting_a_lookup_says_when_and_what_absence_proves() {
    let due = Some(NOW.plus(Duration::from_secs(25)));
    let mut story = in_doubt(Step::Lookup, "awaiting_reconciliation", "inconclusive", due);
    story.history.push(other(EntryKind::Lookup, 100, "absent", "outcome_unknown"));
    let page = text(&story, Some(&asked(1000)));
    says(
        &page,
        &[
            "Asked about it, the destination does not know it.",
            "not finding it is proof from 16 min 40 s after the last send on",
            "The destination is asked in 25 s.",
            "asked: not found proves nothing yet, worker web-2#41c9",
            "Not possible: not before 10:47:49 UTC (in 3 min); until then a request may still arrive, or not be seen yet.",
        ],
        &["resolve 0197c0de-6a1e-7c3b-9f0e-2d5d1c1f7a55 --did-not-happen"],
    );
    story.inventory = Some(Inventory { absence: Some(Duration::from_secs(2000)), ..Inventory::default() });
    says(&text(&story, Some(&asked(60))), &["Not possible: not before 11:04:29 UTC"], &[]);
    story.inventory = None;
    let settled = text(&story, Some(&asked(60)));
    says(&settled, &["--did-not-happen"], &["Not possible"]);
}

#[test]
fn r21_after_a_cancel_by_key_nothing_may_be_sent_under_it() {
    let mut story = in_doubt(Step::Review, "awaiting_review", "contradicted", None);
    story.standing.cancel_sent_at = Some(ago(60));
    let page = text(&story, Some(&keyed(86_400)));
    says(
        &page,
        &[
            "the key is spent, and nothing may be sent under it",
            "cancel by key sent",
            "Send it once more, whatever happened. Not possible: a cancel by its key has been sent",
            "It is held for a person: it was confirmed although a cancel by its key had been sent.",
        ],
        &["--send-again"],
    );
}

#[test]
fn r18_under_other_pins_a_repeat_is_a_risk() {
    let mut story = in_doubt(Step::Review, "awaiting_review", "pins_changed", None);
    story.standing.sent_under = SentUnder::These(Pins([7; 16]));
    let page = text(&story, Some(&keyed(86_400)));
    let parts = ["URL, key form or account have changed since it was sent", "so the destination may not recognise it"];
    says(&page, &parts, &["A repeat is recognised", "promises to recognise"]);
}

#[test]
fn a_harmless_repeat_is_no_risk() {
    let operation = operation(Effect::Idempotent, Contract::silent("c"));
    let page = text(&held(), Some(&operation));
    says(&page, &["By its owner's word a repeat is harmless."], &["twice."]);
}

#[test]
fn a_lapsed_worker_has_perhaps_sent_it() {
    let mut story = in_doubt(Step::Review, "awaiting_review", "worker_lost", None);
    story.history = vec![send(1, 785, "lapsed", "outcome_unknown")];
    let page = text(&story, Some(&silent()));
    says(
        &page,
        &[
            "Perhaps sent once, 13 min ago. Its worker was lost while it may have been sending.",
            "attempt 1 may have been sent",
            "worker lost its lease ended without an answer",
        ],
        &["Sent once"],
    );
}

#[test]
fn r25_what_a_lost_worker_says_later_counts_more_than_that_it_was_lost() {
    let mut story = in_doubt(Step::Review, "awaiting_review", "worker_lost", None);
    let mut late = send(1, 785, "no_answer", "outcome_unknown");
    late.kind = EntryKind::Late;
    story.history = vec![send(1, 785, "lapsed", "outcome_unknown"), late];
    says(&text(&story, Some(&silent())), &["Sent once, 13 min ago.", "late: no answer"], &["Perhaps sent"]);
}

#[test]
fn a_worker_that_holds_it_is_named_and_nothing_is_to_be_decided() {
    let mut story = in_doubt(Step::Send, "dispatching", "timeout", Some(NOW.plus(Duration::from_secs(8))));
    story.standing.state = State::Dispatching;
    story.standing.worker = Some("web-3#77".into());
    story.standing.attempt = Some(Uuid::from_u128(2));
    story.standing.fence = 2;
    let page = text(&story, Some(&keyed(86_400)));
    says(
        &page,
        &[
            "outcome unknown, a worker has it",
            "Worker web-3#77 holds it (fence 2) for 8 s more and may be sending it again",
            "Whether it took effect is still unknown.",
        ],
        &["outboxd resolve"],
    );
    story.standing.due_at = Some(ago(4));
    says(&text(&story, None), &["that ended 4 s ago: it is late or gone, and the next claim takes over."], &[]);
}

#[test]
fn several_sends_are_counted_and_a_run_that_is_alike_is_folded() {
    let mut story = in_doubt(Step::Review, "awaiting_review", "attempts_exhausted", None);
    story.history = (0..100).map(|n| send(n + 1, 800 - u64::from(n), "unknown_answer", "outcome_unknown")).collect();
    story.standing.doubt = Some(Doubt { since: ago(793), attempt: None::<AttemptId> });
    let page = text(&story, Some(&silent()));
    says(
        &page,
        &[
            "Sent 100 times, first 13 min ago, last 11 min ago.",
            "attempt 1 sent",
            "98 more alike",
            "attempt 100 sent",
            "It is held for a person: its attempts are used up.",
        ],
        &["attempt 2 sent", "attempt 99 sent"],
    );
    assert!(page.lines().count() < 40, "{page}");
}

#[test]
fn r22_a_request_to_cancel_what_is_in_doubt_promises_nothing() {
    let mut story = in_doubt(Step::Review, "awaiting_review", "cancelled", None);
    story.cancellation = Some(note(120, "ann", "wrong channel"));
    let parts = [
        "ann asked 2 min ago to cancel it: wrong channel. It is not sent again, but what was sent may have taken effect.",
        "cancel requested by ann: wrong channel",
    ];
    says(&text(&story, Some(&silent())), &parts, &["nothing will be sent"]);
}

#[test]
fn an_operation_that_is_no_longer_configured_is_said_to_be() {
    let page = text(&held(), None);
    says(
        &page,
        &["This configuration does not have the operation", "What the destination promises is not known here"],
        &["→"],
    );
    let mut story = held();
    story.inventory =
        Some(Inventory { destination: Some("news".into()), contract: Some("c".into()), ..Inventory::default() });
    let page = text(&story, None);
    says(&page, &["announcement.deliver → news", "for destination news under contract c."], &[]);
}

#[test]
fn b81_nothing_from_outside_moves_the_cursor_or_forges_a_line() {
    let evil = "\n10:00:00.000  confirmed\u{1b}[2J\r\u{85}\u{2028}\u{202e}";
    let mut story = held();
    story.committed.retry_key = evil.into();
    story.committed.tenant = evil.into();
    story.committed.event_id = Some(evil.into());
    let params = Some(format!("{{\"a\":{evil:?}}}"));
    story.committed.content = Some(Content { params, header_names: vec![evil.into()], body: None });
    story.cancellation = Some(note(10, evil, evil));
    story.history[0].detail = Some(evil.repeat(1000));
    story.history[0].receipt = Some(evil.into());
    story.history[0].worker = Some(evil.into());
    story.history[0].evidence = evil.into();
    story.standing.reason = Some(evil.into());
    let page = text(&story, Some(&silent()));
    assert!(!page.lines().any(|line| line.starts_with("10:00")), "{page}");
    assert!(!page.chars().any(|c| (c.is_control() && c != '\n') || "\u{2028}\u{202e}".contains(c)), "{page}");
    assert!(page.len() < 12_000, "{}", page.len());
}

#[test]
fn r21_a_hint_stands_above_the_decisions_in_one_line() {
    let (story, operation) = (held(), silent());
    let url = format!("GET https://api.example/v1/notes?since=2026-11-29&{}", "x".repeat(150));
    let operation = Some(&operation);
    let view =
        |hint| View { story: &story, operation, notes: &[], config: String::new(), hint: Some(hint), obstacle: None };
    let text = page(&view(Ok(url.clone())), Screen::plain());
    assert!(text.contains(&format!("You may decide\n  Look at: {url}\n  It happened")), "{text}");
    let text = page(&view(Err("params has no `channel`".into())), Screen::plain());
    says(&text, &["Where to look, by the contract's hint, cannot be said: params has no `channel`."], &["Look at"]);
}

#[test]
fn every_command_names_the_whole_id() {
    let page = text(&held(), Some(&silent()));
    let commands: Vec<&str> = page.lines().filter(|line| line.trim_start().starts_with("outboxd ")).collect();
    assert_eq!(commands.len(), 3, "{page}");
    assert!(commands.iter().all(|line| line.contains(ID)), "{page}");
}
