//! Tokens, fetched over connections like the destination's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::clock::Uptime;
use crate::core::credentials::{ClientAuth, ClientCredentials};
use crate::core::evidence::Evidence;
use crate::core::reason::Reason;
use crate::core::request::Template;
use crate::core::target::{Auth, Secret};
use crate::destination::testing::secure::{Authority, Flaw, SecurePeer};
use crate::destination::testing::{CLAIM, Peer, answering, intent, operation, send, target};
use crate::destination::{Destination, Limits};

const LONG: Duration = Duration::from_secs(10);
const TOKEN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 42\r\n\r\n{\"access_token\":\"t0ken\",\"expires_in\":3600}";
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn credentials(token_url: String) -> Auth {
    Auth::OAuth2(ClientCredentials {
        token_url: Template::parse(&token_url).expect("a URL"),
        client_id: "us".into(),
        client_secret: Secret::new("hunter2"),
        client_auth: ClientAuth::Basic,
        scope: None,
        audience: None,
    })
}

#[tokio::test]
async fn the_token_server_is_trusted_as_the_destination_is() {
    let versions = &[&rustls::version::TLS13][..];
    let (ours, theirs) = (Authority::new(), Authority::new());
    for (vouches, evidence, requests) in [(&ours, Evidence::Accepted, 1), (&theirs, Evidence::NotSent, 0)] {
        let server = SecurePeer::new(vouches.server(Flaw::None, false, versions), |mut conversation, _| async move {
            conversation.request().await;
            conversation.say(TOKEN).await;
        })
        .await;
        let count = Arc::new(AtomicUsize::new(0));
        let counting = Arc::clone(&count);
        let peer = SecurePeer::new(ours.server(Flaw::None, false, versions), move |mut conversation, _| {
            let count = Arc::clone(&counting);
            async move {
                let request = String::from_utf8(conversation.request().await).expect("text");
                count.fetch_add(usize::from(request.contains("authorization: Bearer t0ken\r\n")), Ordering::SeqCst);
                conversation.say(OK).await;
            }
        })
        .await;
        let mut target = peer.target(&ours);
        target.auth = credentials(format!("https://{}/token", server.address));
        let finding = send(&Destination::new(target).expect("usable"), LONG).await;
        assert_eq!((finding.evidence, count.load(Ordering::SeqCst)), (evidence, requests), "{finding:?}");
        if evidence == Evidence::NotSent {
            assert_eq!(finding.reason, Some(Reason::CredentialsUnavailable));
            let detail = finding.detail.expect("why");
            assert!(
                detail.starts_with("the token server gave no answer: no trusted connection could be made"),
                "{detail}"
            );
        }
    }
}

#[tokio::test]
async fn whoever_waits_while_one_asks_is_told_the_same_and_nobody_asks_again_at_once() {
    let server = answering("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n").await;
    let peer = answering(OK).await;
    let mut target = target(&format!("http://{}", peer.address));
    target.auth = credentials(format!("http://{}/token", server.address));
    let destination = Destination::new(target).expect("usable");
    let (one, two, three) = tokio::join!(send(&destination, LONG), send(&destination, LONG), send(&destination, LONG));
    for finding in [one, two, three, send(&destination, LONG).await] {
        assert_eq!((finding.evidence, finding.reason), (Evidence::NotSent, Some(Reason::CredentialsUnavailable)));
        assert_eq!(finding.detail.as_deref(), Some("the token server answered 503"));
    }
    assert_eq!((server.connections(), peer.connections()), (1, 0));
}

#[tokio::test]
async fn r25_the_end_of_the_trust_in_the_lease_is_the_end_of_the_wait_for_a_token() {
    let silent = Peer::new(|conversation, _| async move { drop(conversation.rest().await) }).await;
    let mut target = target("http://127.0.0.1:1");
    target.auth = credentials(format!("http://{}/token", silent.address));
    let destination = Destination::new(target).expect("usable");
    let now = Uptime::now();
    for (leave_before, reason) in [(50, Reason::LeaseLost), (200, Reason::CredentialsUnavailable)] {
        let deadline = now.plus(Duration::from_millis(200));
        let limits = Limits { deadline, leave_before: now.plus(Duration::from_millis(leave_before)) };
        let finding = destination.send(&operation(), &intent(b"{}"), &CLAIM, limits).await;
        assert_eq!((finding.evidence, finding.reason), (Evidence::NotSent, Some(reason)));
    }
}
