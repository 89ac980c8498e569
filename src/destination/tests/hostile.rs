//! Answers that are meant to do harm, or might as well be.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::io::AsyncWriteExt;

use crate::core::contract::{Class, JsonIs, Rule, TextIs, When};
use crate::core::evidence::Evidence;
use crate::core::reason::Reason;
use crate::core::target::Operation;
use crate::destination::testing::secure::{Authority, Flaw, SecurePeer};
use crate::destination::testing::{CLAIM, Peer, answering, intent, operation, send, within};

const LONG: Duration = Duration::from_secs(10);
const UNKNOWN: (Evidence, Option<Reason>) = (Evidence::UnknownAnswer, Some(Reason::UnknownAnswer));

/// A rule that has to read every body.
fn with_body_rule() -> Operation {
    let mut operation = operation();
    let when = When { json: vec![("/ok".into(), JsonIs::Text(TextIs::new("false")))], ..When::default() };
    operation.terms.contract.rules = vec![Rule { when, class: Class::Rejected, then: None, wait: None }];
    operation
}

#[tokio::test]
async fn b08_a_head_without_end_is_cut_off_and_unknown() {
    for piece in ["x-more: y\r\n", "y"] {
        let (tell, mut told) = tokio::sync::mpsc::channel(1);
        let peer = Peer::new(move |mut conversation, _| {
            let tell = tell.clone();
            async move {
                conversation.request().await;
                conversation.say("HTTP/1.1 200 OK\r\nx-one: ").await;
                let many = piece.repeat(10_000);
                let mut sent = 0;
                while conversation.stream.write_all(many.as_bytes()).await.is_ok() {
                    sent += many.len();
                }
                let _ = tell.send(sent).await;
            }
        })
        .await;
        let finding = send(&peer.destination(), LONG).await;
        assert_eq!((finding.evidence, finding.reason), UNKNOWN, "{piece:?}: {finding:?}");
        // Socket buffers hold some megabytes beyond what we read.
        assert!(told.recv().await.expect("the connection ended") < 64 << 20);
        assert_eq!(peer.connections(), 1);
    }
}

#[tokio::test]
async fn an_answer_whose_length_is_contradictory_is_unknown_and_its_connection_dropped() {
    for head in
        ["content-length: 2\r\ncontent-length: 200", "content-length: -1", "content-length: 99999999999999999999999"]
    {
        let text = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\nok");
        let peer = answering(Box::leak(text.into_boxed_str())).await;
        let destination = peer.destination();
        for number in 1..=2 {
            let finding = send(&destination, LONG).await;
            assert_eq!((finding.evidence, finding.reason), UNKNOWN, "{head}: {finding:?}");
            assert_eq!(peer.connections(), number);
        }
    }
}

#[tokio::test]
async fn a_second_answer_that_comes_while_the_connection_is_idle_ends_it() {
    let peer = Peer::new(|mut conversation, number| async move {
        conversation.request().await;
        conversation.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        if number == 0 {
            tokio::time::sleep(Duration::from_millis(30)).await;
            conversation.say("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
        }
        conversation.rest().await;
    })
    .await;
    let destination = peer.destination();
    assert_eq!(send(&destination, LONG).await.status, Some(200));
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert_eq!(send(&destination, LONG).await.status, Some(200));
    assert_eq!(peer.connections(), 2);
}

/// Half of it reasonable, half not.
fn any_answer() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "HTTP/1.1 ",
        "HTTP/1.0 ",
        "HTTP/2 ",
        "200 OK",
        "204 No Content",
        "409 Conflict",
        "101 X",
        "100 Continue",
        "999 ?",
        "\r\n",
        "\r\n\r\n",
        "\n\n",
        "content-length: ",
        "content-length: 5",
        "transfer-encoding: chunked",
        "5\r\nhello\r\n",
        "0\r\n\r\n",
        "retry-after: 9",
        "connection: close",
        "content-encoding: gzip",
        "{\"ok\":\"false\"}",
        "\0",
        "\u{85}",
        ":",
    ]);
    let piece = prop_oneof![
        3 => pieces.prop_map(|text: &str| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..12),
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

/// A request that has arrived is never called unsent, and only a head with a 2xx at its beginning confirms it.
#[test]
fn no_answer_makes_a_request_that_has_arrived_unsent_or_confirms_it_by_accident() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let answer = Arc::new(std::sync::Mutex::new(Vec::new()));
    let said = Arc::clone(&answer);
    let peer = runtime.block_on(Peer::new(move |mut conversation, _| {
        let answer = said.lock().expect("an answer").clone();
        async move {
            conversation.request().await;
            let _ = conversation.stream.write_all(&answer).await;
        }
    }));
    let mut runner = TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&any_answer(), |bytes| {
        answer.lock().expect("an answer").clone_from(&bytes);
        let destination = peer.destination();
        let operation = with_body_rule();
        let finding = runtime.block_on(destination.send(&operation, &intent(b"{}"), &CLAIM, within(LONG)));
        prop_assert!(!matches!(finding.evidence, Evidence::NotSent | Evidence::Unsendable), "{finding:?}");
        prop_assert!(
            finding.detail.as_ref().is_none_or(|detail| detail.len() < 1000 && !detail.contains(char::is_control))
        );
        if finding.evidence == Evidence::Accepted {
            let text = String::from_utf8_lossy(&bytes);
            prop_assert!(text.contains("HTTP/1.1 20") || text.contains("HTTP/1.0 20"), "{text}");
        }
        Ok(())
    });
    outcome.expect("no counterexample");
}

#[tokio::test]
async fn a_body_that_ends_with_the_connection_is_whole_only_if_tls_says_goodbye() {
    let authority = Authority::new();
    for (goodbye, evidence) in [(true, Evidence::Accepted), (false, Evidence::UnknownAnswer)] {
        let config = authority.server(Flaw::None, false, rustls::ALL_VERSIONS);
        let peer = SecurePeer::new(config, move |mut conversation, _| async move {
            conversation.request().await;
            conversation.say("HTTP/1.1 200 OK\r\n\r\n{\"ok\":\"true\"}").await;
            if goodbye {
                let _ = conversation.stream.shutdown().await;
            } else {
                let _ = conversation.stream.flush().await;
                let _ = conversation.stream.get_mut().0.shutdown().await;
            }
        })
        .await;
        let destination = peer.destination(&authority);
        let finding = destination.send(&with_body_rule(), &intent(b"{}"), &CLAIM, within(LONG)).await;
        assert_eq!(finding.evidence, evidence, "{finding:?}");
    }
}

#[tokio::test]
async fn b18_an_early_refusal_of_a_large_body_is_heard_over_tls_too() {
    let authority = Authority::new();
    for linger in [20, 200] {
        let config = authority.server(Flaw::None, false, rustls::ALL_VERSIONS);
        let peer = SecurePeer::new(config, move |mut conversation, _| async move {
            let mut head = [0; 1024];
            let _ = tokio::io::AsyncReadExt::read(&mut conversation.stream, &mut head).await;
            conversation.say("HTTP/1.1 413 Content Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await;
            let _ = conversation.stream.flush().await;
            tokio::time::sleep(Duration::from_millis(linger)).await;
        })
        .await;
        let body = vec![b'x'; 50 << 20];
        let finding = peer.destination(&authority).send(&operation(), &intent(&body), &CLAIM, within(LONG)).await;
        let refused = (Evidence::Rejected { replayed: false }, Some(413));
        assert_eq!((finding.evidence, finding.status), refused, "{linger}: {finding:?}");
    }
}
