//! Every kind of contract, and every mistake.

use super::contracts::{Kind, Promise};
use super::destination::Oddities;
use super::explore::{Explored, explore};
use super::mistakes::Mistake;
use super::steps::Setting;
use super::world::Allowance;

/// What may go wrong in one exploration.
#[derive(Clone, Copy)]
struct Trouble {
    name: &'static str,
    allowed: Allowance,
    oddities: Oddities,
    hand_backs: bool,
}

const CALM: Allowance = Allowance { faults: 0, failovers: 0, pin_changes: 0, decisions: 0, stops: 0 };
const PLAIN: Oddities = Oddities { odd: false, replays: false, blocks: false };

const fn trouble(name: &'static str, allowed: Allowance) -> Trouble {
    Trouble { name, allowed, oddities: PLAIN, hand_backs: false }
}

const REPLAYS: Oddities = Oddities { odd: false, replays: true, blocks: false };
const ALL_ODDITIES: Oddities = Oddities { odd: true, replays: true, blocks: true };

// What every `cargo test` explores.
const FAULT: Trouble = trouble("one fault", Allowance { faults: 1, ..CALM });
const ANSWERS: Trouble = Trouble { oddities: ALL_ODDITIES, hand_backs: true, ..trouble("odd answers", CALM) };
const STOP: Trouble = trouble("a stop", Allowance { stops: 1, ..CALM });
const PINS: Trouble = Trouble { oddities: REPLAYS, ..trouble("other pins", Allowance { pin_changes: 1, ..CALM }) };
const DECISION: Trouble = trouble("a decision", Allowance { decisions: 1, ..CALM });
const DEFAULT: [Trouble; 5] = [FAULT, ANSWERS, STOP, PINS, DECISION];

// A lost claim multiplies the worlds; explored for some contracts only.
const FAILOVER: Trouble = trouble("a failover", Allowance { failovers: 1, ..CALM });
const FAILOVER_PINS: Trouble = Trouble {
    oddities: REPLAYS,
    ..trouble("failover, other pins", Allowance { failovers: 1, pin_changes: 1, ..CALM })
};

// What `OUTBOXD_EXPLORE=full` adds.
const FULL: [Trouble; 9] = [
    trouble("two faults", Allowance { faults: 2, ..CALM }),
    Trouble {
        oddities: ALL_ODDITIES,
        hand_backs: true,
        ..trouble("odd answers, a fault", Allowance { faults: 1, ..CALM })
    },
    trouble("a stop, a fault", Allowance { faults: 1, stops: 1, ..CALM }),
    Trouble {
        oddities: REPLAYS,
        ..trouble("other pins twice, a fault", Allowance { faults: 1, pin_changes: 2, ..CALM })
    },
    trouble("a decision, a fault", Allowance { faults: 1, decisions: 1, ..CALM }),
    trouble("two decisions", Allowance { decisions: 2, ..CALM }),
    FAILOVER,
    FAILOVER_PINS,
    Trouble {
        oddities: REPLAYS,
        ..trouble("a stop, other pins, a decision", Allowance { pin_changes: 1, decisions: 1, stops: 1, ..CALM })
    },
];

fn explored(kind: Kind, trouble: Trouble, mistake: Mistake) -> Explored {
    let Trouble { allowed, oddities, hand_backs, .. } = trouble;
    explore(&Setting { promise: Promise::new(kind), mistake, oddities, hand_backs }, allowed)
}

/// Every world of that kind of contract is sound.
fn sound(kind: Kind, also: &[Trouble]) {
    let full = std::env::var("OUTBOXD_EXPLORE").is_ok_and(|width| width == "full");
    for trouble in DEFAULT.iter().chain(also).chain(FULL.iter().filter(|_| full)) {
        match explored(kind, *trouble, Mistake::None) {
            Explored::Clean(worlds) => println!("{kind:?} under {}: {worlds} worlds", trouble.name),
            Explored::Broken(path) => panic!("{kind:?} under {}: {path}", trouble.name),
        }
    }
}

macro_rules! kinds {
    ($($name:ident: $kind:ident $also:expr;)*) => {$(
        #[test]
        fn $name() {
            sound(Kind::$kind, &$also);
        }
    )*};
}

kinds! {
    a_destination_that_promises_nothing_is_sound: NothingPromised [FAILOVER, FAILOVER_PINS];
    an_unreconcilable_operation_is_sound: Unreconcilable [FAILOVER];
    a_key_that_is_remembered_for_ever_is_sound: KeyLong [];
    a_key_that_is_remembered_for_a_while_is_sound: KeyShort [];
    a_lookup_with_settled_absence_is_sound: LookupSettled [FAILOVER];
    a_lookup_without_settled_absence_is_sound: LookupNever [FAILOVER];
    a_key_and_a_lookup_are_sound: KeyAndLookup [];
    a_lookup_before_a_resend_is_sound: LookupThenResend [];
    a_key_and_a_cancel_are_sound: KeyAndCancel [];
    a_cancel_before_a_resend_is_sound: CancelFirst [];
    a_lookup_and_a_cancel_are_sound: LookupAndCancel [];
    a_cancel_and_then_a_lookup_are_sound: CancelThenLookup [];
    a_repeat_that_is_harmless_is_sound: Natural [];
}

macro_rules! caught {
    ($($name:ident: $mistake:ident $kind:ident $trouble:ident $why:literal;)*) => {$(
        #[test]
        fn $name() {
            match explored(Kind::$kind, $trouble, Mistake::$mistake) {
                Explored::Clean(worlds) => panic!("not caught in {worlds} worlds"),
                Explored::Broken(path) => {
                    println!("{path}");
                    assert!(path.starts_with($why), "caught for another reason: {path}");
                }
            }
        }
    )*};
}

caught! {
    caught_window_judged_when_scheduled: WindowJudgedWhenScheduled KeyShort FAULT "";
    caught_pins_not_compared: PinsNotCompared KeyShort PINS "";
    caught_earlier_doubt_forgotten: EarlierDoubtForgotten KeyShort FAULT "";
    caught_absent_trusted_at_once: AbsentTrustedAtOnce LookupSettled FAULT "";
    caught_absent_dated_by_decision: AbsentDatedByDecision LookupSettled FAULT "";
    caught_blind_retry: BlindRetryAfterNoAnswer NothingPromised FAULT "";
    caught_deferred_clears_doubt: DeferredClearsDoubt KeyShort FAULT "";
    caught_not_sent_clears_doubt: NotSentClearsDoubt KeyShort FAULT "";
    caught_resend_after_key_conflict: ResendAfterKeyConflict KeyLong ANSWERS "";
    caught_stop_closes_doubt: StopClosesDoubt KeyShort STOP "";
    caught_rejection_believed_in_doubt: RejectionBelievedInDoubt KeyLong FAULT "";
    caught_second_doubt_keeps_first_name: SecondDoubtKeepsFirstName KeyLong FAULT "";
    caught_success_believed_after_cancel: SuccessBelievedAfterCancel LookupAndCancel FAULT "";
    caught_late_success_dropped: LateSuccessDropped NothingPromised FAULT "";
    caught_late_not_sent_clears_any_doubt: LateNotSentClearsAnyDoubt KeyLong FAULT "";
    caught_late_doubt_dropped: LateDoubtDropped LookupSettled FAILOVER "";
    caught_no_fence_on_settle: NoFenceOnSettle KeyLong FAULT "";
    caught_no_attempt_on_settle: NoAttemptOnSettle NothingPromised FAILOVER "";
    caught_doubt_not_compared_on_settle: DoubtNotComparedOnSettle KeyLong FAULT "";
    caught_digest_not_read_again: DigestNotReadAgain LookupSettled FAILOVER_PINS "";
    caught_claim_time_as_last_sent: ClaimTimeAsLastSent LookupSettled FAULT "";
    caught_widening_given_back: WideningGivenBack KeyAndLookup FAILOVER "";
    caught_lookup_written_over_widening: LookupWrittenOverWidening KeyAndLookup FAILOVER "";
    caught_late_widening_forgotten: LateWideningForgotten LookupSettled FAILOVER "";
    caught_sends_unmarked: SendsUnmarked NothingPromised FAULT "";
    caught_lease_trusted_for_ever: LeaseTrustedForEver KeyShort FAULT "";
}
