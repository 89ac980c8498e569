//! A daemon and a destination that speaks HTTP/2.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::{Reason, server};
use hyper::Response;
use tokio::net::TcpListener;

use crate::support::World;

/// How often each action came, by its id.
type Book = Arc<Mutex<BTreeMap<String, u32>>>;

/// A destination that takes every request and answers 201, or resets its stream; with its URL and the number of its
/// connections.
pub async fn speaking(reset: Option<Reason>) -> (String, Book, Arc<Mutex<u32>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (book, connections) = (Book::default(), Arc::new(Mutex::new(0)));
    let (kept, counted) = (Arc::clone(&book), Arc::clone(&connections));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            *counted.lock().expect("a count") += 1;
            let book = Arc::clone(&kept);
            tokio::spawn(async move {
                let Ok(mut connection) = server::handshake(stream).await else { return };
                while let Some(Ok((request, mut respond))) = connection.accept().await {
                    let action = request.headers()["outbox-action"].to_str().expect("text").to_owned();
                    *book.lock().expect("a book").entry(action).or_default() += 1;
                    if let Some(reason) = reset {
                        respond.send_reset(reason);
                        continue;
                    }
                    let response = Response::builder().status(201).body(()).expect("a response");
                    if let Ok(mut send) = respond.send_response(response, false) {
                        let _ = send.send_data(Bytes::from_static(b"{\"id\":\"r\"}"), true);
                    }
                }
            });
        }
    });
    (url, book, connections)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_actions_share_a_connection_and_each_arrives_once() {
    let mut world = World::new().await;
    world.destination = "http = \"2\"".into();
    let (url, book, connections) = speaking(None).await;
    world.enqueue_many("n", 200).await;
    let _daemon = world.start_with(&world.config().replace(&world.fake.base_url(), &url));
    world.until_count("select count(*) from outbox.status where state = 'succeeded' and receipt = 'r'", 200).await;
    let book = book.lock().expect("a book");
    assert_eq!((book.len(), book.values().sum::<u32>()), (200, 200));
    assert!(*connections.lock().expect("a count") <= 2);
}
