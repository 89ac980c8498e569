//! The gate and the count, without a socket.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::super::trunk::Trunk;
use crate::clock::Uptime;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn later() -> Uptime {
    Uptime::now().plus(Duration::from_secs(60))
}

fn headers(stream: u8, flags: u8) -> Vec<u8> {
    vec![0, 0, 1, 1, flags, 0, 0, 0, stream, 0x82]
}

fn reset(stream: u8) -> Vec<u8> {
    vec![0, 0, 4, 3, 0, 0, 0, 0, stream, 0, 0, 0, 8]
}

fn write(trunk: &Trunk, bytes: &[u8], taken: usize) -> Poll<io::Result<usize>> {
    trunk.write(&mut Context::from_waker(Waker::noop()), &[bytes], |_| Poll::Ready(Ok(taken)))
}

fn all(trunk: &Trunk, bytes: &[u8]) -> bool {
    matches!(write(trunk, bytes, bytes.len()), Poll::Ready(Ok(n)) if n == bytes.len())
}

fn flush(trunk: &Trunk, outcome: Poll<io::Result<()>>) -> Poll<io::Result<()>> {
    trunk.flush(&mut Context::from_waker(Waker::noop()), |_| outcome)
}

fn trunk() -> Arc<Trunk> {
    let trunk = Trunk::new(Arc::default());
    assert!(all(&trunk, PREFACE));
    trunk
}

#[test]
fn only_a_stream_that_is_known_and_in_time_may_send() {
    let known = trunk();
    assert!(known.begin(1, later()));
    assert!(all(&known, &headers(1, 5)));
    assert!(flush(&known, Poll::Ready(Ok(()))).is_ready() && known.is_out(1));
    assert_eq!(known.end(1).written, 10);

    let unknown = trunk();
    assert!(unknown.begin(1, later()));
    assert!(!all(&unknown, &headers(3, 5)));
    assert!(!all(&unknown, &headers(1, 5)), "the connection is over");
    assert_eq!(unknown.end(1).written, 0);

    let late = trunk();
    assert!(late.begin(1, Uptime::now()));
    assert!(!all(&late, &headers(1, 5)));
    let traffic = late.end(1);
    assert!(traffic.missed && traffic.written == 0);
}

#[test]
fn nothing_of_a_stream_leaves_after_its_end_but_its_reset() {
    let trunk = trunk();
    assert!(trunk.begin(1, later()) && trunk.begin(3, later()));
    assert!(all(&trunk, &headers(1, 4)) && flush(&trunk, Poll::Ready(Ok(()))).is_ready());
    assert_eq!(trunk.end(1).written, 10);
    assert!(all(&trunk, &reset(1)));
    assert!(all(&trunk, &headers(3, 5)), "the others go on");
    assert!(!all(&trunk, &[&[0, 0, 1, 0, 1, 0, 0, 0, 1][..], b"x"].concat()));
    assert!(!trunk.is_usable(Duration::MAX));
}

#[test]
fn what_tls_holds_back_of_a_stream_that_ends_ends_the_connection() {
    let trunk = trunk();
    assert!(trunk.begin(1, later()) && trunk.begin(3, later()));
    assert!(all(&trunk, &headers(1, 5)));
    assert!(flush(&trunk, Poll::Pending).is_pending() && !trunk.is_out(1));
    assert_eq!(trunk.end(1).written, 10);
    assert!(matches!(flush(&trunk, Poll::Ready(Ok(()))), Poll::Ready(Err(_))), "it would leave with it");
    assert!(!trunk.may_say_goodbye());
    assert_eq!(trunk.end(3).written, 0);
}

#[test]
fn a_frame_that_was_taken_in_part_is_counted_and_goes_on() {
    let trunk = trunk();
    assert!(trunk.begin(1, later()));
    let frame = headers(1, 5);
    assert!(matches!(write(&trunk, &frame, 9), Poll::Ready(Ok(9))));
    assert!(!trunk.is_out(1));
    assert!(all(&trunk, &frame[9..]) && flush(&trunk, Poll::Ready(Ok(()))).is_ready());
    assert!(trunk.is_out(1));
    assert_eq!(trunk.end(1).written, 10);
}
