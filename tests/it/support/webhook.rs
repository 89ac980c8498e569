//! The receiver's side of Standard Webhooks, written from the specification and not from the code under test.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use outboxd::proving::fake::Seen;
use ring::hmac;

/// Whether one of the request's signatures is that of a shared secret, over the bytes that came, and its time within
/// `tolerance_s` of their arrival.
pub fn verify(seen: &Seen, secret: &str, tolerance_s: u64) -> Result<(), &'static str> {
    let id = seen.header("webhook-id").ok_or("no id")?;
    let time = seen.header("webhook-timestamp").ok_or("no time")?;
    let seconds: u64 = time.parse().map_err(|_| "the time is no number")?;
    let arrived = seen.at.duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs();
    if arrived.abs_diff(seconds) > tolerance_s {
        return Err("the time is too far off");
    }
    let key = BASE64.decode(secret.strip_prefix("whsec_").expect("a prefix")).expect("base64");
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let content = [format!("{id}.{time}.").as_bytes(), &seen.body].concat();
    let signatures = seen.header("webhook-signature").ok_or("no signature")?;
    let verifies = |signature: &str| {
        let code = signature.strip_prefix("v1,").and_then(|text| BASE64.decode(text).ok());
        code.is_some_and(|code| hmac::verify(&key, &content, &code).is_ok())
    };
    if signatures.split(' ').any(verifies) { Ok(()) } else { Err("no signature verifies") }
}

/// When the request says that it was made, in seconds since 1970.
pub fn time(seen: &Seen) -> u64 {
    seen.header("webhook-timestamp").and_then(|time| time.parse().ok()).expect("a time")
}
