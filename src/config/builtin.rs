//! The contracts that are part of this program: what protocols promise, not what providers do.

/// File name and text of each.
pub(super) const FILES: [(&str, &str); 3] = [
    ("http.idempotency-key.toml", include_str!("../../deploy/contracts/http.idempotency-key.toml")),
    ("http.post.toml", include_str!("../../deploy/contracts/http.post.toml")),
    ("http.put.toml", include_str!("../../deploy/contracts/http.put.toml")),
];
