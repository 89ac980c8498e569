//! The idempotency key: how it is rendered, where it goes, how long the destination remembers it.

use std::time::Duration;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::When;
use crate::core::action::ActionId;

/// What a destination does with a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    /// How a repeat is treated.
    pub mode: KeyMode,
    /// Where the key stands in the request.
    pub place: Place,
    /// How it is rendered from the action id.
    pub form: KeyForm,
    /// How it is written in a header.
    pub encode: Encode,
    /// Guaranteed minimum of its memory, from the first send; `None` = not published.
    pub window: Option<Window>,
    /// Taken off the window for clocks, queues and the request's own life.
    pub margin: Duration,
    /// The earliest resend after the last send.
    pub min_gap: Duration,
    /// Fields that switch the destination's memory on: places and their values.
    pub also: Vec<(Place, Value)>,
    /// How an answer is recognised as the replay of the first one; `None` = it is not.
    pub replayed: Option<When>,
    /// The proof in an answer that the destination took the key; where it is missing nothing is resent after that
    /// answer. `None` = it always takes it.
    pub honoured: Option<When>,
}

/// Our own reference in a request: the action id, so that a lookup finds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reference {
    /// Where it is planted.
    pub place: Place,
}

impl Reference {
    /// The reference of an action.
    pub fn render(id: ActionId) -> String {
        KeyForm::Uuid.render(id)
    }
}

/// How a repeat under a known key is treated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyMode {
    /// The repeat gives the first result.
    Dedupe,
    /// The repeat is refused recognisably.
    Conflict,
    /// The request itself is the key (PUT, upsert, precondition).
    Natural,
    /// Duplicates arrive; the receiver sorts them out by the key.
    Receiver,
}

impl KeyMode {
    /// Whether a resend depends on the destination's memory of the key.
    pub const fn needs_window(self) -> bool {
        match self {
            Self::Dedupe | Self::Conflict => true,
            Self::Natural | Self::Receiver => false,
        }
    }
}

/// How long a key is remembered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Window {
    /// At least this long.
    For(Duration),
    /// As long as the object exists.
    Forever,
}

/// A place in a request.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// A header, name in lower case.
    Header(String),
    /// A JSON pointer (RFC 6901) into the body; missing objects on the way are made.
    Json(String),
    /// A field of a form-encoded body.
    Form(String),
    /// A query parameter.
    Query(String),
    /// A `{placeholder}` of the path.
    Path(String),
}

/// How the 128 bits of an action id are rendered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyForm {
    /// `0197c0de-6a1e-7c3b-9f0e-2d5d1c1f7a55`
    Uuid,
    /// A version 4 UUID: 128 bits of SHA-256 of the action id, version and variant bits set.
    Uuid4,
    /// 32 hexadecimal digits.
    Hex,
    /// 25 characters of `0-9a-z`, zero-padded: the shortest common alphabet that holds 128 bits.
    Base36,
}

/// How the key is written in a header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Encode {
    /// As it is.
    Raw,
    /// As a Structured Field string (RFC 9651): in double quotes.
    SfString,
}

impl KeyForm {
    /// Every form, with its name in `form = "…"`.
    pub const ALL: [(Self, &'static str); 4] =
        [(Self::Uuid, "uuid"), (Self::Uuid4, "uuid4"), (Self::Hex, "hex"), (Self::Base36, "base36")];

    /// The key of an action. Always the same for the same action (R17), different for any two (R3).
    pub fn render(self, id: ActionId) -> String {
        match self {
            Self::Uuid => id.0.hyphenated().to_string(),
            Self::Uuid4 => {
                let digest: [u8; 32] = Sha256::digest(id.0.as_bytes()).into();
                let mut half = [0; 16];
                half.copy_from_slice(&digest[..16]);
                uuid::Builder::from_random_bytes(half).into_uuid().hyphenated().to_string()
            }
            Self::Hex => id.0.simple().to_string(),
            Self::Base36 => base36(id.0),
        }
    }
}

impl Key {
    /// A key of which nothing is known but how a repeat is treated and where it stands.
    pub fn new(mode: KeyMode, place: Place) -> Self {
        Self {
            mode,
            place,
            form: KeyForm::Uuid,
            encode: Encode::Raw,
            window: None,
            margin: Duration::ZERO,
            min_gap: Duration::ZERO,
            also: vec![],
            replayed: None,
            honoured: None,
        }
    }

    /// The key of an action as it appears on the wire, but for escaping that its place needs.
    pub fn render(&self, id: ActionId) -> String {
        let key = self.form.render(id);
        match self.encode {
            Encode::Raw => key,
            Encode::SfString => format!("\"{key}\""),
        }
    }
}

fn base36(id: Uuid) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut rest = id.as_u128();
    let mut out = [b'0'; 25];
    for slot in out.iter_mut().rev() {
        *slot = DIGITS[(rest % 36) as usize];
        rest /= 36;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u128) -> ActionId {
        ActionId(Uuid::from_u128(n))
    }

    #[test]
    fn every_form_renders_a_fixed_length_and_keeps_neighbours_apart() {
        for (form, length) in [(KeyForm::Uuid, 36), (KeyForm::Uuid4, 36), (KeyForm::Hex, 32), (KeyForm::Base36, 25)] {
            for n in [0, 1, u128::MAX] {
                assert_eq!(form.render(id(n)).len(), length, "{form:?}");
            }
            assert_ne!(form.render(id(7)), form.render(id(8)));
            assert_eq!(form.render(id(7)), form.render(id(7)));
        }
    }

    #[test]
    fn base36_is_the_number_in_base_36() {
        assert_eq!(KeyForm::Base36.render(id(35)), "000000000000000000000000z");
        assert_eq!(KeyForm::Base36.render(id(36)), "0000000000000000000000010");
        assert_eq!(KeyForm::Base36.render(id(u128::MAX)), "f5lxx1zz5pnorynqglhzmsp33");
    }

    #[test]
    fn uuid4_carries_version_and_variant() {
        let key: Uuid = KeyForm::Uuid4.render(id(1)).parse().expect("a uuid");
        assert_eq!(key.get_version_num(), 4);
        assert_eq!(key.get_variant(), uuid::Variant::RFC4122);
    }

    #[test]
    fn a_structured_field_string_is_quoted() {
        let place = Place::Header("idempotency-key".into());
        let key = Key { form: KeyForm::Hex, encode: Encode::SfString, ..Key::new(KeyMode::Dedupe, place) };
        assert_eq!(key.render(id(1)), "\"00000000000000000000000000000001\"");
    }
}
