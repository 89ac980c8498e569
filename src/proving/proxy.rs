//! A way to a server on which things happen: answers are held back or get lost, connections are cut, nothing passes for
//! a while.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::clock::Uptime;

/// Everything passes, until told otherwise. Dropping it closes its port and every connection.
#[derive(Debug)]
pub struct Proxy {
    /// The server's URL, by way of this proxy.
    pub url: String,
    orders: Arc<watch::Sender<Orders>>,
    accepting: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Orders {
    /// No answer passes.
    frozen: bool,
    /// Nothing passes in either direction.
    dark: bool,
    /// What has waited in the dark for longer than this never passes, nor does anything after it.
    keeps: Option<Duration>,
    /// New connections are reset.
    refuses: bool,
    /// Goes up with each cut: connections that are older are reset.
    cuts: u64,
    /// An answer that holds this, and what follows it, waits.
    hold: Option<String>,
    /// The answer to the first request that holds this is dropped, and its connection closed.
    lose: Option<String>,
    /// How many answers were dropped.
    lost: usize,
}

impl Orders {
    fn holds(&self, answer: &[u8]) -> bool {
        self.frozen || self.dark || self.hold.as_deref().is_some_and(|text| contains(answer, text))
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

impl Proxy {
    /// In front of the server at `url`, whose host and port are `127.0.0.1:PORT`. Nothing is checked of the server.
    ///
    /// # Errors
    /// If no port can be had, or the URL is of another form.
    pub async fn start(url: &str) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let from = url.find("127.0.0.1:").ok_or(io::ErrorKind::InvalidInput)?;
        let to = url[from..].find('/').map_or(url.len(), |end| from + end);
        let server = url[from..to].to_owned();
        let address = listener.local_addr()?.to_string();
        let orders = Arc::new(watch::Sender::new(Orders::default()));
        let accepting = tokio::spawn(accept(listener, server, Arc::clone(&orders)));
        Ok(Self { url: url.replace(&url[from..to], &address), orders, accepting })
    }

    /// From now on no answer passes.
    pub fn freeze(&self) {
        self.orders.send_modify(|orders| orders.frozen = true);
    }

    /// From now on nothing passes. What has waited for longer than `keeps` when it is light again is lost, with its
    /// connection.
    pub fn darken(&self, keeps: Duration) {
        self.orders.send_modify(|orders| (orders.dark, orders.keeps) = (true, Some(keeps)));
    }

    /// From now on an answer that holds this text waits, and its connection with it.
    pub fn hold_answers_with(&self, text: &str) {
        self.orders.send_modify(|orders| orders.hold = Some(text.to_owned()));
    }

    /// Whatever waits passes, in the order in which it came.
    pub fn let_go(&self) {
        self.orders.send_modify(|orders| (orders.frozen, orders.dark, orders.hold) = (false, false, None));
    }

    /// Every connection is reset, and what waits in it is lost. New ones are served.
    pub fn cut(&self) {
        self.orders.send_modify(|orders| orders.cuts += 1);
    }

    /// Whether new connections are reset, from now on.
    pub fn refuse(&self, refuses: bool) {
        self.orders.send_modify(|orders| orders.refuses = refuses);
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

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, server: String, orders: Arc<watch::Sender<Orders>>) {
    loop {
        match listener.accept().await {
            Ok((client, _)) => drop(tokio::spawn(carry(client, server.clone(), Arc::clone(&orders)))),
            // Out of file descriptors, most likely: some come back when connections end.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// One connection, from its first byte to its end.
async fn carry(mut client: TcpStream, server: String, orders: Arc<watch::Sender<Orders>>) {
    let mut watched = orders.subscribe();
    let (cuts, refused) = {
        let now = watched.borrow_and_update();
        (now.cuts, now.refuses)
    };
    if refused {
        return drop(client.set_zero_linger());
    }
    // In the dark nobody comes as far as the server, which would wait for the first word of everybody who does.
    let lit = watched.wait_for(|orders| !orders.dark || orders.cuts != cuts).await.is_ok_and(|now| now.cuts == cuts);
    if !lit {
        return drop(client.set_zero_linger());
    }
    let Ok(mut server) = TcpStream::connect(&server).await else { return };
    // Small messages should not wait for each other; a connection that has gone is met again soon enough.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let doomed = AtomicBool::new(false);
    let ended = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        tokio::select! {
            biased;
            // What waits is lost, also where it is let go in the same moment.
            _ = watched.wait_for(|orders| orders.cuts != cuts) => true,
            // What the client has said arrives, though it has left; what the server says then is lost.
            () = async {
                tokio::join!(
                    requests(from_client, to_server, &orders, &doomed),
                    answers(from_server, to_client, &orders, &doomed),
                );
            } => false,
        }
    };
    if ended {
        let _ = (client.set_zero_linger(), server.set_zero_linger());
    }
}

async fn requests(
    mut client: ReadHalf<'_>,
    mut server: WriteHalf<'_>,
    orders: &watch::Sender<Orders>,
    doomed: &AtomicBool,
) {
    let mut bytes = vec![0; 65536];
    while let Ok(n @ 1..) = client.read(&mut bytes).await {
        let since = Uptime::now();
        orders.send_if_modified(|orders| {
            let now = orders.lose.as_deref().is_some_and(|text| contains(&bytes[..n], text));
            if now {
                orders.lose = None;
                doomed.store(true, Ordering::Relaxed);
            }
            now
        });
        let keeps = orders.subscribe().wait_for(|orders| !orders.dark).await.ok().and_then(|orders| orders.keeps);
        if keeps.is_some_and(|keeps| Uptime::now().since(since) > keeps) || server.write_all(&bytes[..n]).await.is_err()
        {
            break;
        }
    }
    // The other end sees it as the client's end.
    let _ = server.shutdown().await;
}

async fn answers(
    mut server: ReadHalf<'_>,
    mut client: WriteHalf<'_>,
    orders: &watch::Sender<Orders>,
    doomed: &AtomicBool,
) {
    let mut bytes = vec![0; 65536];
    while let Ok(n @ 1..) = server.read(&mut bytes).await {
        if doomed.load(Ordering::Relaxed) {
            orders.send_modify(|orders| orders.lost += 1);
            break;
        }
        let _ = orders.subscribe().wait_for(|orders| !orders.holds(&bytes[..n])).await;
        if client.write_all(&bytes[..n]).await.is_err() {
            break;
        }
    }
    let _ = client.shutdown().await;
}
