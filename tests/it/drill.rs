//! The drill ends by itself, keeps every promise, and would say so if it didn't.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

use crate::support::World;

/// A small drill takes about 80 s, most of it patience with what is unknown; a slow machine may take longer.
const BOUND: Duration = Duration::from_secs(240);

/// More than so many actions take minutes.
const SHORT: u32 = 60;

/// Seeds that ever failed, and one that never did: see the file.
const SEEDS: &str = include_str!("../drill-seeds.txt");

async fn drill(arguments: &[&str]) -> (Option<i32>, Value, String) {
    let child = Command::new(World::binary())
        .args(["drill", "--json"])
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, child).await.expect("it ends by itself").expect("a child");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let (out, err) = (text(output.stdout), text(output.stderr));
    let report = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error} in {out:?}\n{err}"));
    (output.status.code(), report, err)
}

#[tokio::test(flavor = "multi_thread")]
async fn r30_r29_every_promise_holds_under_kills_pauses_and_cuts() {
    let dir = tempfile::tempdir().expect("a directory");
    let page = dir.path().join("drill.html");
    for line in SEEDS.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [seed, actions, workers, ..] = words[..] else { panic!("{line:?} of tests/drill-seeds.txt") };
        if actions.parse::<u32>().expect("a number") > SHORT && std::env::var_os("OUTBOXD_LONG_DRILLS").is_none() {
            continue;
        }
        let page = page.to_str().expect("a path");
        let arguments = ["--seed", seed, "--actions", actions, "--workers", workers, "--html", page];
        let (code, report, err) = drill(&arguments).await;
        assert_eq!(code, Some(0), "seed {seed}: {report:#}\n{err}");
        assert_eq!((&report["violations"], &report["rested"]), (&serde_json::json!([]), &Value::Bool(true)));
        let figure = |pointer: &str| report.pointer(pointer).and_then(Value::as_f64).expect("a figure");
        // A drill in which nothing went wrong would show nothing.
        assert!(figure("/figures/unknown") > 0.0 && figure("/figures/effects") > 0.0, "{report:#}");
        // Whatever was held is decided, as its destination has it.
        assert!(figure("/figures/held") > 0.0 && figure("/figures/held_still") == 0.0, "{report:#}");
        assert_eq!((figure("/figures/duplicates"), figure("/figures/keys_kept_percent")), (0.0, 100.0));
        let times = |fault: &Value| fault["times"].as_u64().unwrap_or(0);
        assert!(report["figures"]["faults"].as_array().expect("faults").iter().map(times).sum::<u64>() > 5);
    }
    let html = std::fs::read_to_string(&page).expect("a page");
    assert!(html.contains("As promised") && html.contains("class=\"timeline\""));
    for elsewhere in ["<script", "src=", "href=", "url(", "@import"] {
        assert!(!html.contains(elsewhere), "{elsewhere}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r30_r11_what_is_said_of_a_failover_holds() {
    let (code, report, err) = drill(&["--scenario", "failover", "--seed", "1"]).await;
    assert_eq!(code, Some(0), "{report:#}\n{err}");
    let claims = report["claims"].as_array().expect("claims");
    assert!(claims.len() >= 5 && claims.iter().all(|claim| claim["held"] == true), "{report:#}");
    assert!(!report["costs"].as_array().expect("costs").is_empty());
}

/// A mistake that is put in is found: exit 1, the promise, the seed and the story of the action.
#[cfg(feature = "test-hooks")]
async fn found(plant: &str, promise: &str, what: &str) {
    found_among("40", plant, promise, what).await;
}

/// The same among so many actions.
#[cfg(feature = "test-hooks")]
async fn found_among(actions: &str, plant: &str, promise: &str, what: &str) {
    let arguments = ["--seed", "1", "--actions", actions, "--workers", "2", "--minutes", "0.1", "--plant", plant];
    let (code, report, err) = drill(&arguments).await;
    assert_eq!(code, Some(1), "{report:#}");
    assert!(report["broken"][promise].as_u64().is_some_and(|count| count > 0), "{promise} in {report:#}");
    let violations = report["violations"].as_array().expect("violations");
    assert!(violations.iter().any(
        |violation| violation["promise"] == promise && !violation["story"].as_array().expect("a story").is_empty()
    ));
    let again = format!("outboxd drill --seed 1 --actions {actions} --workers 2");
    for part in [what, &again, "destination", "ledger"] {
        assert!(err.contains(part), "{part:?} in {err}");
    }
}

#[cfg(feature = "test-hooks")]
#[tokio::test(flavor = "multi_thread")]
async fn r30_a_destination_that_confirms_what_it_has_not_done_is_found() {
    found("liar", "false_state", "the destination has no effect of it").await;
}

#[cfg(feature = "test-hooks")]
#[tokio::test(flavor = "multi_thread")]
async fn r30_a_second_effect_is_found() {
    found("forgetful", "duplicate", "it took effect 2 times").await;
}

#[cfg(feature = "test-hooks")]
#[tokio::test(flavor = "multi_thread")]
async fn r30_r21_an_operator_who_says_the_opposite_is_found() {
    found("contrary", "false_state", "the ledger says one thing, the destination another").await;
}

#[cfg(feature = "test-hooks")]
#[tokio::test(flavor = "multi_thread")]
async fn r30_r27_an_application_that_forgets_its_ordering_keys_is_found() {
    found("jumble", "queue_order", "of the same queue").await;
}

#[cfg(feature = "test-hooks")]
#[tokio::test(flavor = "multi_thread")]
async fn r30_daemons_that_go_too_fast_are_found() {
    found_among("160", "haste", "pace", "requests of one daemon came within").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drill_of_no_actions_is_a_usage_error() {
    for wrong in [["--actions", "0"], ["--workers", "0"], ["--minutes", "0"], ["--minutes", "NaN"]] {
        let child = Command::new(World::binary()).arg("drill").args(wrong).stdin(Stdio::null()).output();
        assert_eq!(child.await.expect("a child").status.code(), Some(2), "{wrong:?}");
    }
}
