//! A destination that can be asked what it has, and told to take it back.

use std::sync::{Arc, Mutex, PoisonError};

use outboxd::proving::fake::{Behaviour, Reply, Seen};
use serde_json::{Value, json};

/// What the destination has on its shelf: the reference each note came with, and the note.
#[derive(Clone, Debug, Default)]
pub struct Shelf(Arc<Mutex<Vec<(String, Value)>>>);

impl Shelf {
    /// Puts a note there, as the request gives it. The request must carry `/reference`.
    pub fn put(&self, seen: &Seen) {
        let note: Value = serde_json::from_slice(&seen.body).expect("a JSON note");
        let reference = note["reference"].as_str().expect("a reference").to_owned();
        self.notes().push((reference, note));
    }

    /// Takes away what has this reference; true where it was there.
    pub fn take_back(&self, reference: &str) -> bool {
        let mut notes = self.notes();
        let before = notes.len();
        notes.retain(|(known, _)| known != reference);
        notes.len() < before
    }

    /// How many notes are there.
    pub fn len(&self) -> usize {
        self.notes().len()
    }

    /// The answer to `GET /notes?reference=…`: what is there under that reference.
    pub fn answer(&self, seen: &Seen) -> Behaviour {
        let asked = seen.query.as_deref().and_then(|query| query.strip_prefix("reference=")).expect("a reference");
        let items: Vec<Value> = (self.notes().iter().enumerate())
            .filter(|(_, (reference, _))| reference == asked)
            .map(|(at, (reference, note))| {
                json!({ "id": format!("shelf-{at}"), "reference": reference, "note": note["note"] })
            })
            .collect();
        Behaviour::reply(Reply::json(200, json!({ "items": items }).to_string()))
    }

    fn notes(&self) -> std::sync::MutexGuard<'_, Vec<(String, Value)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
