//! Which addresses are reached, and which are not.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use uuid::Uuid;

use crate::clock::Uptime;
use crate::core::action::AttemptId;
use crate::core::contract::{By, Lookup};
use crate::core::evidence::Evidence;
use crate::core::reason::Reason;
use crate::destination::resolve::Names;
use crate::destination::testing::{
    CLAIM, Conversation, Peer, answering, asking, intent, operation, question, send, target, when, within,
};
use crate::destination::{Claim, Destination};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const LONG: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_host_from_data_never_reaches_into_our_own_network() {
    let peer = answering(OK).await;
    let port = peer.address.port();
    let destination = Destination::new(target("http://{host}/v1")).expect("usable");
    for host in [
        "127.0.0.1",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "localhost",
        "LOCALHOST.",
        // What the system's resolver takes for an address: one number, octal, hexadecimal, with parts left out.
        "2130706433",
        "017700000001",
        "0x7f000001",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.1",
        "0",
    ] {
        let mut intent = intent(b"{}");
        intent.params = Some(format!("{{\"host\":\"{host}:{port}\"}}"));
        let finding = destination.send(&operation(), &intent, &CLAIM, within(LONG)).await;
        // Where a resolver does not know one of these forms, it is not sent either.
        let unresolved = (Evidence::NotSent, Some(Reason::NameNotResolved));
        let got = (finding.evidence, finding.reason);
        if got == unresolved {
            assert!(!host.contains("127") && !host.contains("host"), "{host}");
        } else {
            assert_eq!(got, (Evidence::Unsendable, Some(Reason::Unsendable)), "{host}: {finding:?}");
            assert!(finding.detail.is_some_and(|detail| detail.ends_with("is not a public address")), "{host}");
        }
    }
    assert_eq!(peer.connections(), 0);
}

#[tokio::test]
async fn a_question_to_a_host_from_data_is_held_to_the_same() {
    let peer = answering(OK).await;
    let destination = Destination::new(target("http://{host}")).expect("usable");
    let mut operation = operation();
    let asked = question("GET", "/x", &[("key", "{key}")]);
    let lookup = Lookup::new(By::Key, asked, when(200, None), asking());
    operation.terms.contract.lookup = Some(lookup);
    let mut intent = intent(b"{}");
    intent.params = Some(format!("{{\"host\":\"{}\"}}", peer.address));
    let finding = destination.look_up(&operation, &intent, &CLAIM, within(LONG)).await;
    assert_eq!(finding.evidence, Evidence::Inconclusive);
    assert!(finding.detail.is_some_and(|detail| detail.contains("127.0.0.1 is not a public address")));
    assert_eq!(peer.connections(), 0);
}

#[tokio::test]
async fn a_fixed_host_that_must_be_public_waits_until_it_is() {
    let peer = answering(OK).await;
    for host in ["127.0.0.1", "localhost"] {
        let mut target = target(&format!("http://{host}:{}", peer.address.port()));
        assert_eq!(send(&Destination::new(target.clone()).expect("usable"), LONG).await.evidence, Evidence::Accepted);
        target.public_only = true;
        let finding = send(&Destination::new(target).expect("usable"), LONG).await;
        assert_eq!((finding.evidence, finding.reason), (Evidence::NotSent, Some(Reason::AddressNotPublic)));
        assert!(finding.detail.is_some_and(|detail| detail.ends_with("is not a public address")));
    }
    assert_eq!(peer.connections(), 2);
}

/// The attempt that a request names.
fn attempt_of(request: &[u8]) -> String {
    let text = String::from_utf8_lossy(request).into_owned();
    text.lines().find_map(|line| line.strip_prefix("outbox-attempt: ")).expect("an attempt").to_owned()
}

#[tokio::test]
async fn b20_under_steady_traffic_a_name_that_has_moved_is_followed() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let serve = |place: &'static str| {
        let received = Arc::clone(&received);
        move |mut conversation: Conversation, _| {
            let received = Arc::clone(&received);
            async move {
                loop {
                    let request = conversation.request().await;
                    if request.is_empty() {
                        break;
                    }
                    received.lock().expect("a list").push((attempt_of(&request), place));
                    conversation.say(OK).await;
                }
            }
        }
    };
    let [before, after] = ["127.0.0.2", "127.0.0.3"].map(|text| text.parse::<IpAddr>().expect("an address"));
    let old = Peer::at(SocketAddr::new(before, 0), serve("old")).await;
    let new = Peer::at(SocketAddr::new(after, old.address.port()), serve("new")).await;

    let told = Arc::new(Mutex::new(vec![before]));
    let target = target(&format!("http://name.example:{}", old.address.port()));
    let mut destination = Destination::resolving(target, Names::Told(Arc::clone(&told))).expect("usable");
    destination.oldest = Duration::from_millis(300);
    let started = Uptime::now();
    let mut moved = None;
    for number in 0..80_u128 {
        if number == 5 {
            // The old one keeps answering.
            *told.lock().expect("addresses") = vec![after];
            moved = Some(Uptime::now());
        }
        let claim = Claim { attempt: AttemptId(Uuid::from_u128(number)), ..CLAIM };
        let finding = destination.send(&operation(), &intent(b"{}"), &claim, within(LONG)).await;
        assert_eq!(finding.evidence, Evidence::Accepted);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(Uptime::now().since(started) > destination.oldest, "the connection was never idle and grew old");
    assert!(moved.is_some());
    let received = received.lock().expect("a list");
    let first_new = received.iter().position(|(_, place)| *place == "new").expect("the new one is reached");
    assert!(first_new > 5 && received[first_new..].iter().all(|(_, place)| *place == "new"));
    let distinct: HashSet<_> = received.iter().map(|(attempt, _)| attempt).collect();
    assert_eq!((distinct.len(), received.len()), (80, 80));
    assert_eq!(old.connections(), 1);
    assert!(new.connections() >= 1);
}
