//! What is written comes back.

use super::*;

fn kept() -> Kept {
    let at = |micros| Timestamp::from_micros(micros);
    let doubt = Some(Doubt { since: at(9), attempt: Some(AttemptId(Uuid::from_u128(7))) });
    Kept {
        operation: "note.publish".into(),
        destination: "fake".into(),
        settlement: Settlement {
            action: ActionId(Uuid::from_u128(1)),
            fence: Fence(3),
            lane: Some(-5),
            queue: Queue::Waits,
            row: Row {
                attempt: AttemptId(Uuid::from_u128(2)),
                claimed_at: at(10),
                step: Step::Send,
                attempts: 1,
                claims: 3,
                committed_at: at(1),
                budget_from: at(2),
                first_sent_at: Some(at(3)),
                last_sent_at: None,
                doubt,
                proof: Some(String::new()),
                cancel_sent: true,
                overridden: true,
                sent_under: SentUnder::These(Pins([4; 16])),
                stop: Some(Stop::Deadline),
            },
            transition: Transition {
                next: Next::Unknown { step: Step::Lookup, delay: Duration::from_millis(5) },
                reason: Some(Reason::Timeout),
                receipt: Some("line\nbreak".into()),
                attempts: 2,
                doubt,
                sent: SentTimes::Ended,
                override_back: true,
            },
            history: Some(History {
                kind: Step::Send,
                idempotency_key: Some("key".into()),
                started_ago: Duration::ZERO,
                deadline_in: Duration::from_secs(1),
                evidence: "no_answer",
                status: Some(502),
                detail: Some("words".into()),
            }),
        },
        evidence: Evidence::NoAnswer,
        timeout: Duration::from_secs(1),
        pins: Pins([5; 16]),
    }
}

fn again(kept: &Kept) -> Option<Kept> {
    let text = serde_json::to_string(&kept.words()).expect("JSON");
    Kept::read(serde_json::from_str(&text).expect("the same"))
}

#[test]
fn what_is_written_is_what_is_read() {
    let mut kept = kept();
    assert_eq!(again(&kept).as_ref(), Some(&kept));
    let delay = Duration::from_secs(1);
    let nexts =
        [Next::Succeeded, Next::TerminalFailure, Next::Pending { delay }, Next::RetryableFailure { delay }, Next::Held];
    for (next, sent) in nexts.into_iter().zip(SENT.into_iter().cycle()) {
        (kept.settlement.transition.next, kept.settlement.transition.sent) = (next, sent);
        kept.settlement.queue = queue_after(&kept.settlement.transition, false);
        kept.settlement.row.sent_under = SentUnder::Mixed;
        assert_eq!(again(&kept).as_ref(), Some(&kept));
    }
    (kept.settlement.history, kept.evidence) = (None, Evidence::Stopped(Stop::Deadline));
    kept.settlement.row.sent_under = SentUnder::Nothing;
    assert_eq!(again(&kept), Some(kept));
}

#[test]
fn a_word_that_is_none_of_ours_is_not_guessed() {
    let mut words = kept().words();
    words.evidence = "certain".into();
    assert_eq!(Kept::read(words), None);
    let mut words = kept().words();
    words.verdict.state = "done".into();
    assert_eq!(Kept::read(words), None);
}
