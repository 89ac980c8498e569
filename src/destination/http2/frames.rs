//! Frames as they cross the wire (RFC 9113 section 4.1), so far as they must be told from one another.

const HEADER_BYTES: usize = 9;

/// What a client says before its first frame (RFC 9113 section 3.4).
const PREFACE_BYTES: usize = 24;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The peer's word that it did nothing with a stream (RFC 9113 section 8.7).
pub(super) const REFUSED_STREAM: u32 = 7;

/// Reads one direction of a connection, in pieces of any size.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    preface: usize,
    header: [u8; HEADER_BYTES],
    have: usize,
    frame: Option<Frame>,
    /// A header block goes on in CONTINUATION frames; `true` = its stream ends with it.
    block: Option<bool>,
}

#[derive(Clone, Debug)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    length: usize,
    left: usize,
    /// The first bytes of its payload.
    payload: [u8; 4],
    got: usize,
}

/// What some bytes were.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// Bytes of a message on that stream; of its head or body.
    Message {
        stream: u32,
        bytes: usize,
        /// They are the last ones of the message.
        last: bool,
    },
    /// The stream was reset, with that code.
    Reset { stream: u32, code: u32 },
    /// No stream above that one was or will be looked at.
    GoAway { last: u32 },
}

impl Frames {
    /// What a client sends.
    pub(super) fn sent() -> Self {
        Self { preface: PREFACE_BYTES, ..Self::received() }
    }

    /// What a server sends.
    pub(super) fn received() -> Self {
        Self { preface: 0, header: [0; HEADER_BYTES], have: 0, frame: None, block: None }
    }

    /// Reads on, and tells what there was.
    pub(super) fn read(&mut self, mut bytes: &[u8], mut tell: impl FnMut(Seen)) {
        let skipped = self.preface.min(bytes.len());
        self.preface -= skipped;
        bytes = &bytes[skipped..];
        while !bytes.is_empty() {
            let Some(frame) = &mut self.frame else {
                let taken = (HEADER_BYTES - self.have).min(bytes.len());
                self.header[self.have..self.have + taken].copy_from_slice(&bytes[..taken]);
                self.have += taken;
                bytes = &bytes[taken..];
                if self.have == HEADER_BYTES {
                    self.have = 0;
                    let frame = Frame::parse(&self.header);
                    // The header counts as well: once it is there, the frame has begun.
                    self.finish(frame, HEADER_BYTES, &mut tell);
                }
                continue;
            };
            let taken = frame.left.min(bytes.len());
            for byte in &bytes[..taken.min(4 - frame.got)] {
                frame.payload[frame.got] = *byte;
                frame.got += 1;
            }
            frame.left -= taken;
            bytes = &bytes[taken..];
            if let Some(frame) = self.frame.take() {
                self.finish(frame, taken, &mut tell);
            }
        }
    }

    /// Tells of `bytes` of a frame, and keeps it if there is more of it.
    fn finish(&mut self, frame: Frame, bytes: usize, tell: &mut impl FnMut(Seen)) {
        let over = frame.left == 0;
        let value = u32::from_be_bytes(frame.payload);
        match frame.kind {
            DATA => tell(Seen::Message { stream: frame.stream, bytes, last: over && frame.flags & END_STREAM != 0 }),
            HEADERS | CONTINUATION => {
                let ends = match (frame.kind, self.block) {
                    (CONTINUATION, Some(ends)) => ends,
                    _ => frame.flags & END_STREAM != 0,
                };
                let block_over = over && frame.flags & END_HEADERS != 0;
                tell(Seen::Message { stream: frame.stream, bytes, last: block_over && ends });
                self.block = if block_over { None } else { Some(ends) };
            }
            RST_STREAM if over && frame.length == 4 => tell(Seen::Reset { stream: frame.stream, code: value }),
            GOAWAY if over && frame.length >= 8 => tell(Seen::GoAway { last: value & 0x7fff_ffff }),
            _ => {}
        }
        if !over {
            self.frame = Some(frame);
        }
    }
}

impl Frame {
    fn parse(header: &[u8; HEADER_BYTES]) -> Self {
        let [a, b, c, kind, flags, s0, s1, s2, s3] = *header;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        Self {
            kind,
            flags,
            stream: u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]),
            length,
            left: length,
            payload: [0; 4],
            got: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = (u32::try_from(payload.len()).expect("short") << 8 | u32::from(kind)).to_be_bytes().to_vec();
        bytes.push(flags);
        bytes.extend(stream.to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    fn story() -> Vec<u8> {
        [
            frame(4, 0, 0, &[0; 12]),
            frame(HEADERS, END_STREAM, 1, b"block"),
            frame(CONTINUATION, END_HEADERS, 1, b"rest"),
            frame(HEADERS, END_HEADERS, 3, b"block"),
            frame(DATA, 0, 3, b"some"),
            frame(DATA, END_STREAM, 3, b""),
            frame(RST_STREAM, 0, 5, &REFUSED_STREAM.to_be_bytes()),
            frame(GOAWAY, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0, b'b', b'y', b'e']),
        ]
        .concat()
    }

    /// Bytes of each stream, whether it ended, and all else.
    fn told(frames: &mut Frames, pieces: &[&[u8]]) -> (Vec<(u32, usize, bool)>, Vec<Seen>) {
        let (mut messages, mut others): (Vec<(u32, usize, bool)>, _) = (vec![], vec![]);
        for piece in pieces {
            frames.read(piece, |seen| match seen {
                Seen::Message { stream, bytes, last } => match messages.iter_mut().find(|m| m.0 == stream) {
                    Some(message) => *message = (stream, message.1 + bytes, message.2 || last),
                    None => messages.push((stream, bytes, last)),
                },
                Seen::Reset { .. } | Seen::GoAway { .. } => others.push(seen),
            });
        }
        (messages, others)
    }

    #[test]
    fn messages_resets_and_goodbyes_are_told_apart() {
        let (messages, others) = told(&mut Frames::received(), &[&story()]);
        assert_eq!(messages, [(1, 9 + 5 + 9 + 4, true), (3, 9 + 5 + 9 + 4 + 9, true)]);
        assert_eq!(others, [Seen::Reset { stream: 5, code: REFUSED_STREAM }, Seen::GoAway { last: 3 }]);
        let mut sent = Frames::sent();
        let preface = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &story()].concat();
        assert_eq!(told(&mut sent, &[&preface]), (messages, others));
    }

    #[test]
    fn a_message_is_not_over_before_its_last_byte() {
        let bytes = [frame(HEADERS, END_HEADERS, 1, b"h"), frame(DATA, END_STREAM, 1, b"body")].concat();
        let (messages, _) = told(&mut Frames::received(), &[&bytes[..bytes.len() - 1]]);
        assert_eq!(messages, [(1, bytes.len() - 1, false)]);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_bytes_are_cut(at in prop::collection::vec(0usize..110, 0..8)) {
            let story = story();
            let mut cuts: Vec<usize> = at.into_iter().map(|at| at.min(story.len())).collect();
            cuts.extend([0, story.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &story[cut[0]..cut[1]]).collect();
            prop_assert_eq!(told(&mut Frames::received(), &pieces), told(&mut Frames::received(), &[&story]));
        }
    }
}
