//! Connections that were idle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use uuid::Uuid;

use crate::core::action::AttemptId;
use crate::core::evidence::Evidence;
use crate::destination::Claim;
use crate::destination::testing::{CLAIM, Peer, intent, operation, within};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const LONG: Duration = Duration::from_secs(10);

/// The gaps of 0.8 to 1.3 s around the moment, after one second, at which the server lets go of an idle connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b01_a_request_around_the_servers_close_is_received_at_most_once_and_known() {
    let received: Arc<Mutex<HashMap<String, u32>>> = Arc::default();
    let book = Arc::clone(&received);
    let peer = Peer::new(move |mut conversation, _| {
        let book = Arc::clone(&book);
        async move {
            while let Ok(request) = tokio::time::timeout(Duration::from_secs(1), conversation.request()).await {
                let text = String::from_utf8_lossy(&request).into_owned();
                let Some(attempt) = text.lines().find_map(|line| line.strip_prefix("outbox-attempt: ")) else { break };
                *book.lock().expect("a book").entry(attempt.to_owned()).or_default() += 1;
                conversation.say(OK).await;
            }
        }
    })
    .await;
    let sends = (0..200_u32).map(|number| {
        let destination = peer.destination();
        tokio::spawn(async move {
            let mut findings = Vec::new();
            for half in 0..2_u32 {
                let claim = Claim { attempt: AttemptId(Uuid::from_u128(u128::from(number * 2 + half))), ..CLAIM };
                let finding = destination.send(&operation(), &intent(b"{}"), &claim, within(LONG)).await;
                findings.push((claim.attempt.to_string(), finding));
                if half == 0 {
                    tokio::time::sleep(Duration::from_micros(800_000 + u64::from(number) * 2_500)).await;
                }
            }
            findings
        })
    });
    let mut confirmed = 0;
    for send in sends.collect::<Vec<_>>() {
        for (attempt, finding) in send.await.expect("no panic") {
            let came = received.lock().expect("a book").get(&attempt).copied().unwrap_or(0);
            let may_come = if finding.evidence == Evidence::Accepted {
                1..=1
            } else if finding.evidence == Evidence::NotSent {
                0..=0
            } else {
                assert_eq!(finding.evidence, Evidence::NoAnswer, "{attempt}: {finding:?}");
                0..=1
            };
            assert!(may_come.contains(&came), "{attempt} came {came} times: {finding:?}");
            confirmed += u32::from(finding.evidence == Evidence::Accepted);
        }
    }
    assert!(confirmed >= 390, "only {confirmed} of 400 were confirmed by a healthy server");
    assert!(peer.connections() > 200, "some connections were closed in between");
}
