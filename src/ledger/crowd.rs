//! How many sessions are used at once: as many as the pool may have, and for a while fewer where the server gives no more
//! (`max_connections`, or the login's own limit). Whoever was refused then waits for one that is there, instead of asking
//! the server again and again and taking its refusal for a lost database.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clock::Uptime;

/// How long it is left at fewer.
const A_WHILE: Duration = Duration::from_secs(30);

/// The door to the sessions. Shared.
#[derive(Clone, Debug)]
pub(super) struct Crowd {
    places: Arc<Semaphore>,
    narrow: Arc<Mutex<Narrow>>,
}

/// Places that have been taken away, and until when.
#[derive(Debug, Default)]
struct Narrow {
    by: u32,
    until: Option<Uptime>,
}

/// Leave to use one session. Given back when dropped.
#[derive(Debug)]
pub(super) struct Place(OwnedSemaphorePermit);

impl Crowd {
    /// For so many.
    pub fn new(places: u32) -> Self {
        Self { places: Arc::new(Semaphore::new(usize::try_from(places).unwrap_or(1))), narrow: Arc::default() }
    }

    /// As soon as one of the sessions that may be used is not.
    pub async fn place(&self) -> Option<Place> {
        self.widen(Uptime::now());
        // Nobody closes it.
        Arc::clone(&self.places).acquire_owned().await.ok().map(Place)
    }

    /// The server has refused this one, and others have theirs: until later there is one place less.
    pub fn give_up(&self, Place(permit): Place) {
        let mut narrow = self.lock();
        permit.forget();
        narrow.by += 1;
        narrow.until = Some(Uptime::now().plus(A_WHILE));
    }

    /// How many places are missing now.
    pub fn missing(&self) -> u32 {
        self.lock().by
    }

    fn widen(&self, now: Uptime) {
        let mut narrow = self.lock();
        if narrow.until.is_some_and(|until| now >= until) {
            self.places.add_permits(usize::try_from(narrow.by).unwrap_or(0));
            *narrow = Narrow::default();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Narrow> {
        // Each change is a single step.
        self.narrow.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn b44_a_place_that_was_given_up_comes_back_later() {
        let crowd = Crowd::new(2);
        let (first, second) = (crowd.place().await.expect("a place"), crowd.place().await.expect("a place"));
        crowd.give_up(second);
        assert_eq!((crowd.missing(), crowd.places.available_permits()), (1, 0));
        drop(first);
        crowd.widen(Uptime::now());
        assert_eq!(crowd.places.available_permits(), 1, "not yet");
        crowd.widen(Uptime::now().plus(A_WHILE));
        assert_eq!((crowd.missing(), crowd.places.available_permits()), (0, 2));
    }
}
