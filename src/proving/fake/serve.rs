//! The destination's side of a connection.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::Shared;
use super::behaviour::{Answer, Behaviour, Effect, Ending, Wait};
use super::record::{Outcome, Seen};
use super::wire::Wire;
use crate::clock;

/// How a new connection is received, before anything is read from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reception {
    /// Requests are read and answered.
    Serve,
    /// The same, but the connection is closed after that long, whatever it is doing.
    ServeFor(Duration),
    /// Nothing is read.
    Refuse(Ending),
    /// Nothing is read, these bytes are sent.
    Say(Bytes, Ending),
}

/// Ends a connection without an answer; hyper drops it.
#[derive(Debug, thiserror::Error)]
#[error("the connection ends here")]
struct Ends;

/// Takes connections until told to stop; then closes all of them.
pub(super) async fn accept(listener: TcpListener, shared: Arc<Shared>, mut stop: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(receive(stream, Arc::clone(&shared)))),
                // Out of file descriptors, most likely: some come back when connections end.
                Err(_) => sleep(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
            _ = &mut stop => break,
        }
    }
    drop(listener);
    connections.shutdown().await;
}

async fn receive(stream: TcpStream, shared: Arc<Shared>) {
    let mut number = 0;
    shared.count(|tally| {
        tally.connections += 1;
        number = tally.connections;
    });
    let reception = shared.receptionist()(number);
    let wire = Wire::new(stream);
    match reception {
        Reception::Serve => serve(wire, number, shared).await,
        Reception::ServeFor(time) => tokio::select! {
            () = serve(wire, number, shared) => {}
            () = sleep(time) => {}
        },
        Reception::Refuse(ending) => wire.end(ending).await,
        Reception::Say(bytes, ending) => {
            // Whoever has gone cannot be told.
            let _ = wire.say(&bytes).await;
            wire.end(ending).await;
        }
    }
}

async fn serve(wire: Wire, connection: usize, shared: Arc<Shared>) {
    let hand = wire.clone();
    let service = service_fn(move |request| handle(request, connection, hand.clone(), Arc::clone(&shared)));
    // An error is an end we chose or a caller that left: both are what this is for.
    // Half closed connections are served on: a request that arrived takes effect, though its caller has left already.
    let _ = http1::Builder::new().half_close(true).serve_connection(TokioIo::new(wire), service).await;
}

async fn handle(
    request: Request<Incoming>,
    connection: usize,
    wire: Wire,
    shared: Arc<Shared>,
) -> Result<Response<Full<Bytes>>, Ends> {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        shared.count(|tally| tally.torn += 1);
        return Err(Ends);
    };
    let seen = Seen {
        number: 0,
        connection,
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().map(str::to_owned),
        headers: head.headers,
        body: body.to_bytes(),
        key: None,
        at: clock::wall(),
    };
    let (seen, before) = shared.note(seen);
    let Behaviour { effect, effect_after, wait, answer } = shared.behaviour()(&seen, before);
    let outcome = take_effect(&shared, seen, effect, effect_after).await;
    let waited = async {
        match wait {
            Wait::No => {}
            Wait::For(time) => sleep(time).await,
            Wait::Gate(gate) => gate.pass().await,
        }
    };
    tokio::select! {
        biased;
        () = waited => {}
        () = wire.gone() => return Err(Ends),
    }
    give(answer, &outcome, &wire).await
}

/// A late effect happens in a task of its own: nothing that the caller does can take it back.
async fn take_effect(shared: &Arc<Shared>, seen: Seen, effect: Effect, after: Duration) -> Outcome {
    if after.is_zero() {
        let outcome = shared.take_effect(&seen, effect);
        // Only now: whoever waits for this request finds its effect done.
        shared.count(|tally| tally.requests += 1);
        return outcome;
    }
    shared.count(|tally| tally.requests += 1);
    let shared = Arc::clone(shared);
    let task = tokio::spawn(async move {
        sleep(after).await;
        shared.take_effect(&seen, effect)
    });
    task.await.unwrap_or_default()
}

async fn give(answer: Answer, outcome: &Outcome, wire: &Wire) -> Result<Response<Full<Bytes>>, Ends> {
    let receipt = outcome.receipt.as_deref();
    let (bytes, ending) = match answer {
        Answer::Reply(reply) => {
            let replayed = outcome.replayed && (200..300).contains(&reply.status);
            return Ok(reply.filled(receipt, replayed).into_response());
        }
        Answer::Drip { reply, chunk, every } => {
            for piece in reply.filled(receipt, outcome.replayed).to_wire().chunks(chunk.max(1)) {
                sleep(every).await;
                wire.say(piece).await.map_err(|_| Ends)?;
            }
            (Bytes::new(), Ending::Close)
        }
        Answer::Cut { reply, keep, ending } => {
            let reply = reply.filled(receipt, outcome.replayed);
            let mut bytes = reply.to_wire();
            bytes.truncate(bytes.len() - reply.body.len().saturating_sub(keep));
            (bytes.into(), ending)
        }
        Answer::Raw { bytes, ending } => (bytes, ending),
    };
    wire.say(&bytes).await.map_err(|_| Ends)?;
    wire.end(ending).await;
    Err(Ends)
}
