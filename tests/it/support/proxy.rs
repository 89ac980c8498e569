//! The way to the database, where answers can be held back or get lost.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Everything passes, until told otherwise. What the client says always passes.
pub struct Proxy {
    /// The database's URL, by way of this proxy.
    pub url: String,
    orders: Arc<watch::Sender<Orders>>,
}

#[derive(Default)]
struct Orders {
    /// No answer passes.
    frozen: bool,
    /// An answer that holds this, and what follows it, waits.
    hold: Option<String>,
    /// The answer to the first request that holds this is dropped, and its connection closed.
    lose: Option<String>,
    /// How many answers were dropped.
    lost: usize,
    /// Goes up with each cut: connections that are older end.
    cuts: u64,
}

impl Orders {
    fn holds(&self, answer: &[u8]) -> bool {
        self.frozen || self.hold.as_deref().is_some_and(|text| contains(answer, text))
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

impl Proxy {
    /// In front of the database at `url`, whose host and port are `127.0.0.1:PORT`.
    pub async fn start(url: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let from = url.find("127.0.0.1:").expect("a host");
        let to = from + url[from..].find('/').expect("a database");
        let server = url[from..to].to_owned();
        let address = listener.local_addr().expect("an address").to_string();
        let orders = Arc::new(watch::Sender::new(Orders::default()));
        let shared = Arc::clone(&orders);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&server).await else { continue };
                let doomed = Arc::new(AtomicBool::new(false));
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                let (mut watched, orders) = (shared.subscribe(), Arc::clone(&shared));
                tokio::spawn(async move {
                    let cuts = watched.borrow_and_update().cuts;
                    tokio::select! {
                        biased;
                        // What waits is lost, also where it is let go in the same moment.
                        _ = watched.wait_for(|orders| orders.cuts != cuts) => {}
                        // What the client has said arrives, though it has left; what the server says then is lost.
                        _ = async {
                            tokio::join!(
                                requests(from_client, to_server, Arc::clone(&orders), Arc::clone(&doomed)),
                                answers(from_server, to_client, Arc::clone(&orders), doomed),
                            )
                        } => {}
                    }
                });
            }
        });
        Self { url: url.replace(&url[from..to], &address), orders }
    }

    /// From now on no answer passes.
    pub fn freeze(&self) {
        self.orders.send_modify(|orders| orders.frozen = true);
    }

    /// From now on an answer that holds this text waits, and its connection with it.
    pub fn hold_answers_with(&self, text: &str) {
        self.orders.send_modify(|orders| orders.hold = Some(text.to_owned()));
    }

    /// Whatever waits passes.
    pub fn let_go(&self) {
        self.orders.send_modify(|orders| (orders.frozen, orders.hold) = (false, None));
    }

    /// Every connection ends, and what waits in it is lost. New ones are served.
    pub fn cut(&self) {
        self.orders.send_modify(|orders| orders.cuts += 1);
    }

    /// The answer to the next request that holds this text gets lost, with its connection.
    pub fn lose_the_answer_to(&self, text: &str) {
        self.orders.send_modify(|orders| orders.lose = Some(text.to_owned()));
    }

    /// Answers that got lost.
    pub fn lost(&self) -> usize {
        self.orders.borrow().lost
    }
}

async fn requests(
    mut client: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    orders: Arc<watch::Sender<Orders>>,
    doomed: Arc<AtomicBool>,
) {
    let mut bytes = vec![0; 65536];
    while let Ok(n @ 1..) = client.read(&mut bytes).await {
        orders.send_if_modified(|orders| {
            let now = orders.lose.as_deref().is_some_and(|text| contains(&bytes[..n], text));
            if now {
                orders.lose = None;
                doomed.store(true, Ordering::Relaxed);
            }
            now
        });
        if server.write_all(&bytes[..n]).await.is_err() {
            return;
        }
    }
}

async fn answers(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    orders: Arc<watch::Sender<Orders>>,
    doomed: Arc<AtomicBool>,
) {
    let mut bytes = vec![0; 65536];
    while let Ok(n @ 1..) = server.read(&mut bytes).await {
        if doomed.load(Ordering::Relaxed) {
            orders.send_modify(|orders| orders.lost += 1);
            return;
        }
        let waits = orders.borrow().holds(&bytes[..n]);
        if waits {
            let _ = orders.subscribe().wait_for(|orders| !orders.holds(&bytes[..n])).await;
        }
        if client.write_all(&bytes[..n]).await.is_err() {
            return;
        }
    }
}
