use std::io::ErrorKind;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::clock::stopwatch;

/// A client that sees every byte.
struct Raw(TcpStream);

impl Raw {
    async fn to(fake: &Fake) -> Self {
        Self(TcpStream::connect(fake.addr()).await.unwrap())
    }

    async fn post(&mut self, key: &str, body: &str) {
        let length = body.len();
        let request = format!(
            "POST /v1/notes?x=1 HTTP/1.1\r\nhost: fake\r\nIdempotency-Key: {key}\r\nOutbox-Action: a-{key}\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        self.0.write_all(request.as_bytes()).await.unwrap();
    }

    /// One read: enough for answers that are sent in one write.
    async fn some(&mut self) -> String {
        let mut buffer = [0; 4096];
        let read = self.0.read(&mut buffer).await.unwrap();
        String::from_utf8_lossy(&buffer[..read]).into_owned()
    }

    /// Everything until the connection ends, and how it ended.
    async fn rest(mut self) -> (String, std::io::Result<()>) {
        let mut all = Vec::new();
        let end = loop {
            match self.0.read_buf(&mut all).await {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        (String::from_utf8(all).unwrap(), end)
    }

    async fn is_silent(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(100), self.0.read_u8()).await.is_err()
    }
}

/// Posts once on a new connection and reads until the end.
async fn post(fake: &Fake, key: &str) -> (String, std::io::Result<()>) {
    let mut raw = Raw::to(fake).await;
    raw.post(key, "{}").await;
    raw.0.shutdown().await.unwrap();
    raw.rest().await
}

async fn post_kept_open(fake: &Fake, key: &str) -> Raw {
    let mut raw = Raw::to(fake).await;
    raw.post(key, "{}").await;
    raw
}

#[tokio::test]
async fn a_good_destination_gives_a_receipt_and_recognises_repeats() {
    let fake = Fake::start().await.unwrap();
    let mut raw = Raw::to(&fake).await;
    raw.post("k", "one").await;
    let first = raw.some().await;
    assert!(first.starts_with("HTTP/1.1 201 Created\r\n") && first.ends_with(r#"{"id":"r-1"}"#), "{first}");
    assert!(!first.contains("replayed"));
    raw.post("k", "two").await;
    let second = raw.some().await;
    assert!(second.ends_with(r#"{"id":"r-1"}"#) && second.contains("idempotent-replayed: true"), "{second}");

    let seen = fake.seen();
    assert_eq!(seen.len(), 2);
    assert_eq!((&*seen[0].method, &*seen[0].path, seen[0].query.as_deref()), ("POST", "/v1/notes", Some("x=1")));
    assert_eq!(
        (&*seen[1].text(), seen[1].key.as_deref(), seen[1].number, seen[1].connection),
        ("two", Some("k"), 2, 1)
    );
    assert!(seen[0].at <= seen[1].at);
    let effect = &fake.effects()[0];
    assert_eq!((effect.times, effect.replays, effect.other_content), (1, 1, 1));
    assert_eq!(effect.action.as_deref(), Some("a-k"));
    assert_eq!((fake.duplicates(), fake.connections(), fake.tally().effects), (0, 1, 1));
}

#[tokio::test]
async fn without_dedupe_every_repeat_is_a_duplicate() {
    let fake = Fake::start().await.unwrap();
    fake.behave(|_, _| Behaviour::accept().without_dedupe());
    let mut raw = Raw::to(&fake).await;
    for receipt in ["r-1", "r-2", "r-3"] {
        raw.post("k", "").await;
        assert!(raw.some().await.ends_with(&format!(r#"{{"id":"{receipt}"}}"#)));
    }
    assert_eq!((fake.effects()[0].times, fake.duplicates()), (3, 2));
}

#[tokio::test]
async fn another_key_for_the_same_action_is_a_duplicate_too() {
    let fake = Fake::start().await.unwrap();
    let mut raw = Raw::to(&fake).await;
    for key in ["one", "two"] {
        let request = format!("PUT / HTTP/1.1\r\nhost: f\r\nidempotency-key: {key}\r\noutbox-action: a\r\n\r\n");
        raw.0.write_all(request.as_bytes()).await.unwrap();
        raw.some().await;
    }
    assert_eq!((fake.effects().len(), fake.duplicates()), (2, 1));
}

#[tokio::test]
async fn a_withheld_answer_is_an_effect_and_silence() {
    let fake = Fake::start().await.unwrap();
    fake.behave(|_, before| if before == 0 { Behaviour::accept().withholding() } else { Behaviour::accept() });
    let mut raw = post_kept_open(&fake, "k").await;
    fake.wait_effects(1).await.unwrap();
    assert!(raw.is_silent().await);
    drop(raw);
    let (answer, _) = post(&fake, "k").await;
    assert!(answer.contains("idempotent-replayed: true"), "{answer}");
    assert_eq!((fake.tally().effects, fake.tally().replays), (1, 1));
}

#[tokio::test]
async fn a_gate_holds_the_answer_until_it_opens() {
    let fake = Fake::start().await.unwrap();
    let gate = Gate::new();
    let held = gate.clone();
    fake.behave(move |_, _| Behaviour::accept().held_by(&held));
    let mut raw = post_kept_open(&fake, "k").await;
    fake.wait_seen(1).await.unwrap();
    assert!(raw.is_silent().await);
    gate.open();
    assert!(raw.some().await.starts_with("HTTP/1.1 201"));
}

#[tokio::test]
async fn connections_end_as_told_after_the_effect() {
    let fake = Fake::start().await.unwrap();
    fake.behave(|seen, _| match seen.key.as_deref() {
        Some("reset") => Behaviour::accept().resetting(),
        Some("close") => Behaviour::accept().closing(),
        Some("half") => Behaviour::accept().stuttering(),
        Some("cut") => Behaviour::accept().cutting(Reply::receipt(), 3, Ending::Close),
        Some("drip") => Behaviour::accept().dripping(Reply::receipt(), 20, Duration::from_millis(5)),
        Some(_) | None => Behaviour::refuse(404),
    });
    let reset = |end: std::io::Result<()>| end.is_err_and(|e| e.kind() == ErrorKind::ConnectionReset);

    let (text, end) = post_kept_open(&fake, "reset").await.rest().await;
    assert!(text.is_empty() && reset(end));
    let (text, end) = post_kept_open(&fake, "close").await.rest().await;
    assert!(text.is_empty() && end.is_ok(), "{text} {end:?}");
    let (text, end) = post_kept_open(&fake, "half").await.rest().await;
    assert!(text == "HTTP/1.1 20" && reset(end), "{text}");
    let (text, end) = post_kept_open(&fake, "cut").await.rest().await;
    assert!(text.contains("content-length: 12") && text.ends_with("\r\n\r\n{\"i") && end.is_ok(), "{text} {end:?}");
    let (text, end) = post_kept_open(&fake, "drip").await.rest().await;
    assert!(text.ends_with(r#"{"id":"r-5"}"#) && end.is_ok(), "{text} {end:?}");
    assert_eq!((fake.tally().effects, fake.duplicates()), (5, 0));
}

#[tokio::test]
async fn answers_without_effect() {
    let fake = Fake::start().await.unwrap();
    fake.behave(|seen, _| match seen.key.as_deref() {
        Some("throttle") => Behaviour::throttle(&RetryAfter::Seconds(2)),
        Some("redirect") => Behaviour::redirect(307, "http://127.0.0.1:1/"),
        Some("slow") => Behaviour::refuse(503).delayed(Duration::from_millis(40)),
        Some("after") => Behaviour::accept().answering(Reply::json(500, r#"{"saved":"{receipt}"}"#)),
        Some(_) | None => Behaviour::refuse(422),
    });
    for (key, status, holds) in [
        ("throttle", "429", "retry-after: 2"),
        ("redirect", "307", "location: http://127.0.0.1:1/"),
        ("other", "422", "content-type: application/json"),
    ] {
        let text = post_kept_open(&fake, key).await.some().await;
        assert!(text.starts_with(&format!("HTTP/1.1 {status}")) && text.contains(holds), "{text}");
    }
    let asked = stopwatch();
    let text = post_kept_open(&fake, "slow").await.some().await;
    assert!(text.starts_with("HTTP/1.1 503") && asked.elapsed() >= Duration::from_millis(40));
    assert!(fake.effects().is_empty());
    let text = post_kept_open(&fake, "after").await.some().await;
    assert!(text.starts_with("HTTP/1.1 500") && text.ends_with(r#"{"saved":"r-1"}"#), "{text}");
    assert_eq!(fake.effects().len(), 1);
}

#[tokio::test]
async fn a_late_effect_happens_though_the_caller_has_left() {
    let fake = Fake::start().await.unwrap();
    fake.behave(|_, _| Behaviour::accept().taking_effect_after(Duration::from_millis(80)));
    drop(post_kept_open(&fake, "k").await);
    fake.wait_effects(1).await.unwrap();
}

#[tokio::test]
async fn connections_are_received_as_told() {
    let fake = Fake::start().await.unwrap();
    fake.receive(|n| match n {
        1 => Reception::Refuse(Ending::Close),
        2 => Reception::Refuse(Ending::Reset),
        3 => Reception::Say("SSH-2.0-nope\r\n".into(), Ending::Close),
        4 => Reception::ServeFor(Duration::from_millis(30)),
        _ => Reception::Refuse(Ending::Hold),
    });
    assert!(Raw::to(&fake).await.rest().await.1.is_ok());
    assert!(Raw::to(&fake).await.rest().await.1.is_err());
    assert_eq!(Raw::to(&fake).await.rest().await.0, "SSH-2.0-nope\r\n");
    assert_eq!(Raw::to(&fake).await.rest().await.0, "");
    assert!(post_kept_open(&fake, "k").await.is_silent().await);
    assert_eq!((fake.connections(), fake.tally().requests), (5, 0));
}

#[tokio::test]
async fn a_request_cut_short_is_counted_apart() {
    let fake = Fake::start().await.unwrap();
    let mut raw = Raw::to(&fake).await;
    raw.0.write_all(b"POST / HTTP/1.1\r\nhost: f\r\ncontent-length: 10\r\n\r\n12345").await.unwrap();
    drop(raw);
    fake.wait_until(Duration::from_secs(5), |tally| tally.torn == 1).await.unwrap();
    assert!(fake.seen().is_empty() && fake.effects().is_empty());
}

#[tokio::test]
async fn a_stopped_destination_refuses_and_comes_back_with_its_memory() {
    let fake = Fake::start().await.unwrap();
    let mut open = post_kept_open(&fake, "k").await;
    open.some().await;
    fake.stop().await;
    assert!(open.rest().await.0.is_empty());
    let refused = TcpStream::connect(fake.addr()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    fake.resume().await.unwrap();
    let text = post_kept_open(&fake, "k").await.some().await;
    assert!(text.contains("idempotent-replayed: true"), "{text}");
    let addr = fake.addr();
    drop(fake);
    let gone = async {
        while TcpStream::connect(addr).await.is_ok() {
            tokio::task::yield_now().await
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone).await.unwrap();
}

#[tokio::test]
async fn waiting_in_vain_says_what_was_seen() {
    let fake = Fake::start().await.unwrap();
    fake.keyed_by(|seen| seen.header("x-ref").map(str::to_owned));
    fake.record_requests(false);
    post_kept_open(&fake, "k").await.some().await;
    let error = fake.wait_until(Duration::from_millis(20), |tally| tally.requests == 2).await.unwrap_err();
    assert!(error.to_string().contains("requests: 1"), "{error}");
    assert!(fake.seen().is_empty());
    assert_eq!(fake.effects()[0].key, None);
}

/// A measurement: `cargo test --release --lib fake::tests::throughput -- --ignored --nocapture`. One thread has the
/// destination, another the clients.
#[test]
#[ignore = "a measurement"]
fn throughput() {
    const CONNECTIONS: usize = 64;
    const EACH: usize = 3_000;
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    let done = Gate::new();
    let gate = done.clone();
    let destination = std::thread::spawn(move || {
        runtime().block_on(async {
            let fake = Fake::start().await.unwrap();
            fake.record_requests(false);
            tell.send(fake.addr()).unwrap();
            gate.pass().await;
            fake.tally()
        })
    });
    let addr = told.recv().unwrap();
    let started = stopwatch();
    runtime().block_on(async {
        let mut clients = tokio::task::JoinSet::new();
        for client in 0..CONNECTIONS {
            clients.spawn(async move {
                let mut raw = Raw(TcpStream::connect(addr).await.unwrap());
                for n in 0..EACH {
                    raw.post(&format!("{client}-{n}"), r#"{"text":"v1.2 is out"}"#).await;
                    assert!(raw.some().await.starts_with("HTTP/1.1 201"));
                }
            });
        }
        while let Some(client) = clients.join_next().await {
            client.unwrap();
        }
    });
    let elapsed = started.elapsed();
    done.open();
    let tally = destination.join().unwrap();
    assert_eq!(tally.effects, CONNECTIONS * EACH);
    println!("{:.0} requests/s", tally.requests as f64 / elapsed.as_secs_f64());
}
