//! Who does not speak HTTP/2, where that is for the destination to say.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hyper::Uri;

use crate::clock::Uptime;

/// Until an origin is asked again: asking costs a connection.
const AGAIN: Duration = Duration::from_secs(600);

/// Hosts that come from data may be many.
const MOST: usize = 1024;

/// The origins that have chosen HTTP/1.1, and until when that is taken to be so.
#[derive(Default)]
pub(in super::super) struct Choices(Mutex<HashMap<String, Uptime>>);

impl Choices {
    /// It has just chosen HTTP/1.1, or nothing.
    pub(super) fn declined(&self, uri: &Uri) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, until| !until.is_over());
        }
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(origin(uri), Uptime::now().plus(AGAIN));
    }

    /// Whether it has, not long ago.
    pub(super) fn is_declined(&self, uri: &Uri) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&origin(uri)).is_some_and(|until| !until.is_over())
    }
}

fn origin(uri: &Uri) -> String {
    uri.authority().map(ToString::to_string).unwrap_or_default()
}
