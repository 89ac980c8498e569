//! The gate and the count, without a socket.

use super::*;
use crate::destination::socket::Socket;
use std::pin::Pin;
use std::task::Waker as TaskWaker;
use tokio::io::AsyncWrite;

fn write(wire: &Wire, offered: usize, outcome: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
    wire.write(&mut Context::from_waker(TaskWaker::noop()), offered, |_| outcome)
}

fn later() -> Uptime {
    Uptime::now().plus(Duration::from_secs(60))
}

#[test]
fn nothing_leaves_outside_an_exchange() {
    let wire = Wire::new(Arc::default());
    assert!(matches!(write(&wire, 3, Poll::Ready(Ok(3))), Poll::Ready(Err(_))));
    let exchange = wire.begin(later());
    assert!(matches!(write(&wire, 3, Poll::Ready(Ok(3))), Poll::Ready(Ok(3))));
    exchange.release();
    assert!(matches!(write(&wire, 3, Poll::Ready(Ok(3))), Poll::Ready(Err(_))));
    assert_eq!(exchange.end().map(|t| t.written), Some(3));
}

#[test]
fn nothing_leaves_after_its_time_or_after_the_end() {
    let wire = Wire::new(Arc::default());
    let exchange = wire.begin(Uptime::now());
    assert!(write(&wire, 3, Poll::Ready(Ok(3))).is_ready());
    assert_eq!(exchange.end(), Some(Traffic { written: 0, read: 0, missed: true }));
    assert!(matches!(write(&wire, 3, Poll::Ready(Ok(3))), Poll::Ready(Err(_))));
    assert!(matches!(wire.begin(later()).end(), Some(Traffic { written: 0, .. })));
}

#[test]
fn a_peer_that_stops_in_mid_request_is_still_read() {
    let wire = Wire::new(Arc::default());
    let exchange = wire.begin(later());
    assert!(write(&wire, 9, Poll::Ready(Ok(3))).is_ready() && exchange.is_behind());
    let broken = || Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
    assert!(matches!(write(&wire, 6, broken()), Poll::Ready(Ok(6))));
    assert_eq!(exchange.end().map(|t| t.written), Some(3));
}

#[test]
fn a_first_write_that_breaks_is_reported() {
    let wire = Wire::new(Arc::default());
    let exchange = wire.begin(later());
    let broken = Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
    assert!(matches!(write(&wire, 6, broken), Poll::Ready(Err(_))));
    assert_eq!(exchange.end().map(|t| t.written), Some(0));
}

#[test]
fn a_first_write_that_breaks_after_a_part_of_it_has_left_is_counted() {
    let (ours, _theirs) = tokio::io::duplex(64);
    let mut socket = Socket::new(ours);
    let wire = Wire::new(socket.tap());
    let exchange = wire.begin(later());
    // As TLS does it: one record went out, the next found the socket broken.
    let taken = wire.write(&mut Context::from_waker(TaskWaker::noop()), 9, |cx| {
        assert!(matches!(Pin::new(&mut socket).poll_write(cx, b"half"), Poll::Ready(Ok(4))));
        Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    });
    assert!(matches!(taken, Poll::Ready(Ok(9))));
    assert_eq!(exchange.end().map(|t| t.written), Some(4));
    assert!(!wire.may_say_goodbye());
}

#[test]
fn what_tls_holds_back_leaves_only_while_the_gate_is_open() {
    let wire = Wire::new(Arc::default());
    let flush = |outcome| wire.flush(&mut Context::from_waker(TaskWaker::noop()), |_| outcome);
    let exchange = wire.begin(later());
    assert!(write(&wire, 9, Poll::Ready(Ok(9))).is_ready() && exchange.is_behind());
    assert!(flush(Poll::Pending).is_pending() && exchange.is_behind() && wire.may_say_goodbye());
    assert!(matches!(flush(Poll::Ready(Ok(()))), Poll::Ready(Ok(()))) && !exchange.is_behind());
    assert!(flush(Poll::Pending).is_pending());
    assert_eq!(exchange.end().map(|t| t.written), Some(9));
    assert!(matches!(flush(Poll::Ready(Ok(()))), Poll::Ready(Err(_))), "nothing leaves after the end");
    assert!(!wire.may_say_goodbye());
}

#[test]
fn an_exchange_that_is_over_cannot_end_its_successor() {
    let wire = Wire::new(Arc::default());
    let first = wire.begin(later());
    let second = wire.begin(later());
    assert_eq!(first.end(), None);
    first.release();
    assert!(matches!(write(&wire, 3, Poll::Ready(Ok(3))), Poll::Ready(Ok(3))));
    assert_eq!(second.end().map(|t| t.written), Some(3));
}
