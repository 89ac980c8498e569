//! A good destination and three bad ones under database restarts and killed sessions: nothing is lost, nothing is sent
//! without a record, and nothing takes effect twice.

use std::time::Duration;

use outboxd::proving::flow::{Kind, Scene};

use crate::support::World;

/// What comes for each of the bad ones, every so many rounds.
const BACKLOG: i64 = 60;
const BACKLOG_EVERY: usize = 6;
/// Rounds of trouble, each about two seconds; `.ci/run` asks for minutes of them.
const ROUNDS: usize = 6;

fn rounds() -> usize {
    std::env::var("OUTBOXD_SOAK_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"))
}

#[tokio::test(flavor = "multi_thread")]
async fn r11_b41_a_soak_among_bad_destinations_and_a_bad_database_loses_nothing_and_sends_nothing_unrecorded() {
    let mut scene = Scene::start(World::binary()).await.expect("the parts");
    for round in 0..rounds() {
        if round % BACKLOG_EVERY == 0 {
            for kind in Kind::BAD {
                scene.enqueue(kind, BACKLOG).await.expect("enqueued");
            }
        }
        for _ in 0..20 {
            scene.enqueue(Kind::Healthy, 3).await.expect("enqueued");
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
        match round % 3 {
            0 => scene.kill_sessions().await.expect("killed"),
            1 => scene.restart_database().expect("restarted"),
            _ => {}
        }
    }
    scene.mend().await.expect("mended");
    let done = async {
        for kind in Kind::ALL {
            while scene.open(kind).await.expect("a count") > 0 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    };
    if tokio::time::timeout(Duration::from_secs(60), done).await.is_err() {
        panic!("not all is done:\n{}", scene.logs());
    }
    let session = scene.session().await.expect("a session");
    let not_done = "select count(*) from outbox.delivery where state <> 'succeeded'";
    assert_eq!(session.query_one(not_done, &[]).await.expect("a count").get::<_, i64>(0), 0, "{}", scene.logs());
    let recorded = session.query("select attempt_id::text from outbox.attempt", &[]).await.expect("the history");
    let recorded: std::collections::HashSet<String> = recorded.iter().map(|row| row.get(0)).collect();
    for kind in Kind::ALL {
        let fake = scene.fake(kind);
        let sql = "select count(*) from outbox.action where operation = $1";
        let actions: i64 = session.query_one(sql, &[&kind.operation()]).await.expect("a count").get(0);
        assert_eq!(i64::try_from(fake.effects().len()), Ok(actions), "{}", kind.name());
        assert_eq!(fake.duplicates(), 0, "{}", kind.name());
        for seen in fake.seen() {
            let attempt = seen.header("outbox-attempt").expect("it names its attempt").to_owned();
            assert!(recorded.contains(&attempt), "{}: {attempt} was sent and is not recorded", kind.name());
        }
    }
}
