//! What can happen on the wire, what is learnt from it, and where the action then stands: the table of tests/README.md.

use std::collections::BTreeMap;

use bytes::Bytes;
use outboxd::proving::fake::{Behaviour, Ending, Reply};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::daemon_http2::speaking;
use crate::database_tls::{Served, authority, served};
use crate::support::{Front, World};
use crate::tidy::documents::{change_rows, hold};
use crate::tidy::read;

/// Who is at the other end.
enum Peer {
    /// The destination, which behaves like that.
    Fake(Behaviour),
    /// At that base URL, with these lines more.
    At(String, &'static str),
}

fn raw(bytes: &'static [u8], ending: Ending) -> Peer {
    Peer::Fake(Behaviour::accept().saying(Bytes::from_static(bytes), ending))
}

fn answer(reply: Reply) -> Peer {
    Peer::Fake(Behaviour::accept().answering(reply))
}

fn status(status: u16) -> Peer {
    answer(Reply::new(status))
}

/// What a peer does with a greeting.
async fn greeted(hold: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut greeting = [0; 4096];
                while stream.read(&mut greeting).await.is_ok_and(|n| n > 0) && hold {}
            });
        }
    });
    format!("https://{address}")
}

async fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

const PRIVATE_ROOTS: &str = "tls = { roots = { file = \"ca.pem\" } }";

/// Where no request arrives, or the peer is another one.
async fn unreached(world: &World) -> Vec<(&'static str, Peer, Vec<Front>)> {
    let authority = authority();
    std::fs::write(world.dir.path().join("ca.pem"), authority.pem()).expect("written");
    let at = |url: String, lines| Peer::At(url, lines);
    let mut all = vec![
        ("the port is closed", at(closed_port().await, ""), vec![]),
        ("the name does not resolve", at("http://name.invalid".into(), ""), vec![]),
        ("nobody answers the TLS handshake", at(greeted(true).await, PRIVATE_ROOTS), vec![]),
        ("the TLS handshake is cut", at(greeted(false).await, PRIVATE_ROOTS), vec![]),
        ("the address is private, `public_only` is set", at(world.fake.base_url(), "public_only = true"), vec![]),
        ("the address is private, the host comes from data", at("http://{host}".into(), ""), vec![]),
    ];
    for (what, reason) in [
        ("HTTP/2: the stream is refused", h2::Reason::REFUSED_STREAM),
        ("HTTP/2: the stream is cancelled", h2::Reason::CANCEL),
    ] {
        let (url, _, _) = speaking(Some(reason)).await;
        all.push((what, at(url, "http = \"2\""), vec![]));
    }
    for Served { name, certificate, key } in served(&authority) {
        let front = Front::start(world.fake.addr(), &certificate, &key).await;
        let what = match name {
            "good" => "the certificate is good",
            "wrong name" => "the certificate is another host's",
            "expired" => "the certificate has expired",
            "self-signed" => "nobody vouches for the certificate",
            other => panic!("{other}"),
        };
        all.push((what, at(front.base_url(), PRIVATE_ROOTS), vec![front]));
    }
    all
}

/// Where the request arrived.
fn answered() -> Vec<(&'static str, Peer)> {
    let whole = Reply::receipt;
    let accept = Behaviour::accept;
    vec![
        ("no answer, the connection stays open", Peer::Fake(accept().withholding())),
        ("no answer, the connection is closed", Peer::Fake(accept().closing())),
        ("no answer, the connection is reset", Peer::Fake(accept().resetting())),
        ("half a status line, then a reset", Peer::Fake(accept().stuttering())),
        ("something that is not HTTP", raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", Ending::Hold)),
        ("a 101 that nobody asked for", raw(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n", Ending::Hold)),
        ("interim answers without end", Peer::Fake(accept().saying("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".repeat(2000), Ending::Hold))),
        ("interim answers, then the answer", Peer::Fake(accept().saying(
            format!("{}HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n".repeat(50)), Ending::Hold))),
        ("two answers to one request, the first one counts",
            raw(b"HTTP/1.1 201 Created\r\ncontent-length: 10\r\n\r\n{\"id\":\"a\"}HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", Ending::Hold)),
        ("201 with a receipt", Peer::Fake(accept())),
        ("201, the body breaks off before the receipt", Peer::Fake(accept().cutting(whole(), 3, Ending::Reset))),
        ("201, the body drips on past the deadline", Peer::Fake(accept().cutting(whole(), 3, Ending::Hold))),
        ("201, a body that says gzip and is not", answer(whole().header("content-encoding", "gzip"))),
        ("201, a body with NUL and invalid UTF-8", answer(Reply::json(201, &b"{\"id\":\"\0\xff\"}"[..]))),
        ("202", status(202)),
        ("302 to somewhere else", answer(Reply::new(302).header("location", "http://elsewhere.example/"))),
        ("304", status(304)),
        ("400", status(400)),
        ("401", status(401)),
        ("404", status(404)),
        ("408", status(408)),
        ("409", status(409)),
        ("413", status(413)),
        ("421", status(421)),
        ("425", status(425)),
        ("429", status(429)),
        ("429, come back in 10^30 seconds", answer(Reply::new(429).header("retry-after", format!("1{}", "0".repeat(30))))),
        ("429, come back yesterday", answer(Reply::new(429).header("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"))),
        ("500", status(500)),
        ("502", status(502)),
        ("503, come back in 7 s", answer(Reply::new(503).header("retry-after", "7"))),
        ("504", status(504)),
    ]
}

/// A destination and an operation for one of them.
fn tables(number: usize, base_url: &str, lines: &str) -> String {
    format!(
        "\n[destination.d{number}]\nbase_url = \"{base_url}\"\nconnect_timeout = \"500ms\"\n{lines}\n\
         [operation.\"wire.{number}\"]\ndestination = \"d{number}\"\nrequest = {{ method = \"POST\", path = \"/{number}\" }}\n\
         contract = \"test\"\neffect = \"keyed\"\nmeaning = \"m\"\nowner = \"o\"\ntimeout = \"1500ms\"\n\
         backoff = {{ initial = \"1000s\", max = \"2000s\" }}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn r13_every_fault_of_the_wire_is_evidence_of_a_kind_and_leaves_a_state() {
    let mut world = World::new().await;
    let mut names = Vec::new();
    let mut behaviours = BTreeMap::new();
    let mut fronts = Vec::new();
    let unreached = unreached(&world).await.into_iter();
    for (name, peer, keep) in unreached.chain(answered().into_iter().map(|(name, peer)| (name, peer, vec![]))) {
        fronts.extend(keep);
        let number = names.len();
        names.push(name);
        match peer {
            Peer::At(url, lines) => world.contract.push_str(&tables(number, &url, lines)),
            Peer::Fake(behaviour) => {
                world.contract.push_str(&tables(number, &world.fake.base_url(), ""));
                behaviours.insert(format!("/{number}"), behaviour);
            }
        }
    }
    world.fake.behave(move |seen, _| behaviours.get(&seen.path).cloned().unwrap_or_else(Behaviour::accept));

    let host = format!("{{\"host\":\"{}\"}}", world.fake.addr());
    let sql = "select action_id from outbox.enqueue($1, '{}', 'k', params => $2::text::json)";
    let mut actions: Vec<(&str, Uuid)> = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let row = world.db.client.query_one(sql, &[&format!("wire.{number}"), &host]).await.expect("enqueued");
        actions.push((name, row.get(0)));
    }
    let _daemon = world.daemon().await;
    let all = i64::try_from(actions.len()).expect("few");
    world.until_count("select count(distinct action_id) from outbox.attempt", all).await;

    let mut found = BTreeMap::new();
    for (name, action) in actions {
        let first = world.history(action).await.into_iter().next().expect("an attempt");
        let standing = world.standing(action).await;
        assert!(first.detail.as_deref().unwrap_or_default().len() <= 2000, "{name}: {first:?}");
        let reason = standing.reason.map_or_else(|| "–".to_owned(), |reason| format!("`{reason}`"));
        let cells = [format!("`{}`", first.evidence), reason, format!("`{}`", first.verdict)];
        println!("{name}: {}", cells.join(" "));
        found.insert(name, cells);
    }
    let document = read("tests/README.md");
    let should_be = change_rows(&document, "wire", |row| {
        let cells = found.remove(row[0].as_str()).unwrap_or_else(|| panic!("{:?} is not tried", row[0]));
        [row[0].clone()].into_iter().chain(cells).collect()
    });
    assert!(found.is_empty(), "the table of tests/README.md lacks {:?}", found.keys());
    hold("tests/README.md", &document, &should_be);
}
