//! The demo ends by itself, and its own figures are as promised.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

use crate::support::World;

/// A small demo takes about 10 s; a slow machine may take longer.
const BOUND: Duration = Duration::from_secs(120);

async fn demo(arguments: &[&str]) -> (Option<i32>, String, String) {
    let child =
        Command::new(World::binary()).arg("demo").args(arguments).stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(BOUND, child).await.expect("it ends by itself").expect("a child");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_ends_by_itself_with_both_sides_agreeing() {
    let (code, out, err) = demo(&["--notes", "40", "--json"]).await;
    assert_eq!(code, Some(0), "{out}\n{err}");
    let report: Value = serde_json::from_str(&out).expect("one JSON object");
    let figure = |pointer: &str| {
        report.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {report:#}"))
    };

    assert_eq!(figure("/destination/duplicates"), 0);
    assert_eq!(figure("/destination/effects"), figure("/ledger/succeeded"));
    assert_eq!(figure("/destination/rejected"), figure("/ledger/terminal_failure"));
    assert_eq!(figure("/desk/asked"), 40);
    assert_eq!(figure("/ledger/succeeded") + figure("/ledger/terminal_failure"), 40);
    assert_eq!(figure("/desk/rolled_back_sent"), 0);
    assert_eq!(figure("/desk/asked_twice_sent_twice"), 0);
    assert_eq!(report["violations"], serde_json::json!([]));

    // A demo in which nothing went wrong would show nothing.
    for trouble in ["/destination/hidden", "/destination/lost", "/destination/throttled", "/destination/rejected"] {
        assert!(figure(trouble) > 0, "{trouble} in {report:#}");
    }
    assert!(figure("/desk/rolled_back") > 0 && figure("/desk/asked_twice") > 0);
    // Every unknown is accounted for, by what caused it and by what ended it.
    assert!(figure("/doubts/attempts") >= figure("/destination/hidden") + figure("/destination/lost"));
    let sum = |names: [&str; 5]| names.iter().map(|name| figure(&format!("/doubts/{name}"))).sum::<u64>();
    assert_eq!(sum(["withheld", "reset", "lost", "answered_late", "never_arrived"]), figure("/doubts/attempts"));
    assert_eq!(sum(["recognised", "taken_then", "late_answer", "not_done", "open"]), figure("/doubts/attempts"));
    assert_eq!(figure("/doubts/open"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_of_no_notes_is_a_usage_error() {
    let (code, _, _) = demo(&["--notes", "0"]).await;
    assert_eq!(code, Some(2));
}
