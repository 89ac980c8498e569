//! Action ids as they are typed.

use uuid::Uuid;

/// The id, or what to say of what was typed instead: often a retry key, or half an id.
pub fn parse(typed: &str) -> Result<Uuid, &'static str> {
    Uuid::try_parse(typed)
        .map_err(|_| "an action id has 36 characters; outboxd list prints them, by retry key too (--retry-key)")
}
