//! Limits, and what is left under them.

use super::*;

const ANY: u32 = u32::MAX;

/// Of destinations; operations have no bound.
fn open(destinations: &[u32]) -> Open {
    Open { destinations: destinations.to_vec(), operations: vec![ANY; 4] }
}

const SEND_2: Stream = Stream { operation: 2, asks: false };

/// `number` is the operation's.
fn limit(number: usize, destination: usize, operation_max: u32, asks: bool) -> Limit {
    Limit { number, destination, operation_max, tenant_max: None, asks }
}

/// Operations 0 and 1 share destination 0, operation 2 has destination 1. None of them asks.
fn slots(max: u32) -> Slots {
    Slots::new(max, &[10, 10], &[limit(0, 0, 10, false), limit(1, 0, 10, false), limit(2, 1, 4, false)])
}

#[test]
fn shares_never_exceed_a_shared_limit() {
    for (max, open) in [(100, [10, 10]), (5, [10, 10]), (100, [1, 10]), (100, [0, 0])] {
        for hungry in [[true; 6], [false; 6], [true, false, true, true, false, false]] {
            let shares = slots(max).shares(&hungry, &self::open(&open), 1);
            assert!(shares[..4].iter().sum::<u32>() <= 10.min(open[0]), "{shares:?}");
            assert!(shares[4..].iter().sum::<u32>() <= 4.min(open[1]), "{shares:?}");
            assert!(shares.iter().sum::<u32>() <= max);
        }
    }
}

#[test]
fn an_idle_operation_keeps_one_slot_and_the_hungry_get_the_rest() {
    let hungry = [true, false, false, false, false, false];
    assert_eq!(slots(100).shares(&hungry, &open(&[10, 10]), 0), [7, 1, 1, 1, 1, 1]);
    assert_eq!(slots(2).shares(&[true; 6], &open(&[10, 10]), 0), [1, 1, 0, 0, 0, 0]);
}

#[test]
fn a_dropped_slot_is_free_again() {
    let slots = slots(100);
    let held: Vec<Slot> = (0..4).map(|_| slots.take(SEND_2, "t", 0)).collect();
    assert_eq!(slots.shares(&[true; 6], &open(&[10, 10]), 0)[4..], [0, 0]);
    drop(held);
    assert_eq!((slots.in_use(), slots.shares(&[true; 6], &open(&[10, 10]), 0)[4]), (0, 3));
}

#[test]
fn r19_asking_and_sending_never_take_each_others_slots() {
    let slots = Slots::new(64, &[16], &[limit(0, 0, 16, true)]);
    assert_eq!(slots.streams().len(), 2);
    assert_eq!(slots.shares(&[true, true], &open(&[u32::MAX]), 0), [14, 2]);
    let asking: Vec<Slot> = (0..2).map(|_| slots.take(slots.streams()[1], "t", 0)).collect();
    assert_eq!(slots.shares(&[true, true], &open(&[u32::MAX]), 0), [14, 0], "a flood of doubts leaves the sends alone");
    drop(asking);
    let _sending: Vec<Slot> = (0..14).map(|_| slots.take(slots.streams()[0], "t", 0)).collect();
    assert_eq!(slots.shares(&[true, true], &open(&[u32::MAX]), 0), [0, 2], "and a flood of sends the doubts");
}

#[test]
fn what_has_room_is_another_question_than_what_gets_a_share() {
    let slots = Slots::new(64, &[1], &[limit(0, 0, 1, false), limit(1, 0, 1, false)]);
    assert_eq!(slots.shares(&[false; 4], &open(&[u32::MAX]), 2), [0, 0, 1, 0]);
    assert_eq!(slots.room(&open(&[u32::MAX])), [true; 4]);
    let _held = slots.take(slots.streams()[0], "t", 0);
    assert_eq!((slots.room(&open(&[u32::MAX])), slots.room(&open(&[0]))), (vec![false; 4], vec![false; 4]));
}

#[test]
fn r19_a_limit_of_one_is_taken_in_turns() {
    let slots = Slots::new(64, &[1], &[limit(0, 0, 1, true)]);
    assert_eq!(slots.shares(&[true, true], &open(&[u32::MAX]), 0), [1, 0]);
    assert_eq!(slots.shares(&[true, true], &open(&[u32::MAX]), 1), [0, 1]);
}

#[test]
fn under_other_limits_what_is_in_use_goes_on_counting_where_it_was_taken() {
    let mut slots = slots(100);
    let held: Vec<Slot> = (0..3).map(|_| slots.take(SEND_2, "t", 0)).collect();
    // Operation 1 is gone, operation 2 leads to destination 0 now and may do more, operation 3 is new.
    slots.limited(100, &[10, 10], &[limit(0, 0, 10, false), limit(2, 0, 6, false), limit(3, 1, 9, false)]);
    let two = slots.take(Stream { operation: 1, asks: false }, "t", 0);
    assert_eq!(
        slots.shares(&[true; 6], &open(&[10, 10]), 0),
        [6, 1, 1, 1, 6, 1],
        "three of destination 1 are still out"
    );
    drop((held, two));
    assert_eq!(slots.in_use(), 0);
    assert_eq!(slots.shares(&[true; 6], &open(&[10, 10]), 0), [7, 1, 1, 1, 8, 1]);
}

#[test]
fn b41_a_tenant_is_full_when_it_has_what_it_may_and_not_when_others_have() {
    let two = Limit { tenant_max: Some(2), ..limit(0, 0, 16, true) };
    let slots = Slots::new(64, &[16], &[two]);
    let [sends, asks] = [slots.streams()[0], slots.streams()[1]];
    let held = [slots.take(sends, "a", 0), slots.take(sends, "b", 0), slots.take(asks, "a", 0)];
    assert!(!slots.some_tenant_is_full());
    let second = slots.take(sends, "a", 0);
    assert!(slots.some_tenant_is_full());
    let (max, mut used) = slots.tenants(sends).expect("a bound");
    used.sort();
    assert_eq!((max, used), (2, vec![("a".to_owned(), 2), ("b".to_owned(), 1)]));
    drop((held, second));
    assert_eq!(slots.tenants(sends), Some((2, vec![])), "and nothing is kept of those that have none");
}

#[test]
fn what_an_operation_may_send_bounds_its_two_streams_together() {
    let slots = Slots::new(64, &[16], &[limit(0, 0, 16, true), limit(1, 0, 16, false)]);
    let few = Open { destinations: vec![ANY], operations: vec![3, ANY] };
    let shares = slots.shares(&[true; 4], &few, 0);
    assert_eq!((shares[0] + shares[1], shares[2] + shares[3]), (3, 13), "{shares:?}");
}
