//! A daemon that dies, or stands still past its lease, at each place in the life of an action (R29): effects are counted
//! at the destination, and what the ledger says is compared with them.

use std::time::Duration;

use outboxd::failpoint::Point;
use outboxd::proving::daemon::Daemon;
use outboxd::proving::fake::Behaviour;
use rustix::process::Signal;
use tokio::process::Command;
use uuid::Uuid;

use crate::support::world::{ASKED, KEYED, NOTHING_PROMISED, SOON, keyed};
use crate::support::{Shelf, World};

/// What the destination promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// It remembers keys for a day.
    Keyed,
    /// It remembers keys for two seconds, and the successor comes later.
    Forgetful,
    /// It can be asked.
    Asked,
    /// Nothing.
    Nothing,
}

/// What happens to the daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Dies,
    SleepsPastItsLease,
}

async fn world(kind: Kind) -> World {
    let mut world = World::new().await;
    let timeout = "1s";
    match kind {
        Kind::Keyed => world.contract = KEYED.into(),
        Kind::Forgetful => {
            world.contract = KEYED.replace("24h", "3s").replace("1h", "500ms");
            world.operation = keyed(timeout, "");
        }
        Kind::Asked => {
            world.contract = ASKED.into();
            let shelf = Shelf::default();
            world.fake.behave(move |seen, _| match seen.method.as_str() {
                "POST" => {
                    shelf.put(seen);
                    Behaviour::accept().without_dedupe()
                }
                _ => shelf.answer(seen),
            });
        }
        Kind::Nothing => {
            world.contract = NOTHING_PROMISED.into();
            world.operation = format!("effect = \"unreconcilable\"\ntimeout = \"{timeout}\"");
            world.fake.behave(|_, _| Behaviour::accept().without_dedupe());
        }
    }
    world
}

/// What must be true in the end: the label, and the effects at the destination.
fn expected(kind: Kind, point: Point, fate: Fate) -> (&'static str, usize) {
    use Point::{
        AfterAnswer, AfterClaim, AfterLastByte, AfterSettle, BeforeClaim, BeforeFirstByte, BeforeSettle, ClaimUnheard,
        SettleUnheard,
    };
    match (kind, point, fate) {
        (_, BeforeClaim | SettleUnheard | AfterSettle, _) | (Kind::Keyed | Kind::Asked, _, _) => ("succeeded", 1),
        // A send that nothing can settle is marked before it leaves: until then it is known that it has not.
        (Kind::Nothing, ClaimUnheard | AfterClaim, _) => ("succeeded", 1),
        // What the sleeper knows settles it after all: that it was not sent, or what the answer was.
        (Kind::Nothing | Kind::Forgetful, _, Fate::SleepsPastItsLease) => ("succeeded", 1),
        (Kind::Nothing, BeforeFirstByte, Fate::Dies) => ("awaiting_review", 0),
        (Kind::Forgetful, ClaimUnheard | AfterClaim | BeforeFirstByte, Fate::Dies) => ("awaiting_review", 0),
        (Kind::Nothing | Kind::Forgetful, AfterLastByte | AfterAnswer | BeforeSettle, Fate::Dies) => {
            ("awaiting_review", 1)
        }
    }
}

fn armed(world: &World, point: Point, fate: Fate) -> Daemon {
    let file = world.dir.path().join("armed.toml");
    std::fs::write(&file, world.config()).expect("a file");
    let what = if fate == Fate::Dies { "die" } else { "stop" };
    let mut command = Command::new(World::binary());
    command.args(["run", "--config"]).arg(&file).env("OUTBOXD_FAILPOINT", format!("{}={what}", point.name()));
    Daemon::start_with(&mut command, &world.dir.path().join("armed.log")).expect("a daemon")
}

async fn gone(daemon: &mut Daemon, fate: Fate) {
    match fate {
        Fate::Dies => {
            let status = daemon.ended(SOON).await.expect("it dies");
            assert!(!status.success(), "{status}");
        }
        Fate::SleepsPastItsLease => {
            let asleep = async {
                while !daemon.is_stopped().expect("a child") {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(SOON, asleep).await.expect("it stands still");
        }
    }
}

/// Whoever asks again meanwhile gets the first action, and other content under its key changes nothing.
async fn asked_again(world: &World, action: Uuid) {
    let sql = "select action_id, created from outbox.enqueue('note.publish', $1::text::json, 'n-1')";
    let row = world.db.client.query_one(sql, &[&"{\"note\":\"n-1\"}"]).await.expect("the first");
    assert_eq!((row.get::<_, Uuid>(0), row.get::<_, bool>(1)), (action, false));
    let other = world.db.client.query_one(sql, &[&"{\"note\":\"another\"}"]).await.expect_err("other content");
    assert_eq!(other.code().map(|code| code.code()), Some("OB409"));
}

async fn case(point: Point, kind: Kind, fate: Fate) {
    let what = format!("{kind:?} {point:?} {fate:?}");
    let world = world(kind).await;
    let action = world.enqueue("n-1").await;
    let mut first = armed(&world, point, fate);
    gone(&mut first, fate).await;
    asked_again(&world, action).await;
    if kind == Kind::Forgetful {
        let closed = format!(
            "coalesce((select first_sent_at + interval '3 s' < clock_timestamp() or closed_at is not null
               from outbox.delivery where action_id = '{action}'), true)"
        );
        world.until_true(&closed).await;
    }
    let mut successor = world.daemon().await;
    let settled = format!(
        "select count(*) from outbox.status where action_id = '{action}'
           and label in ('succeeded', 'terminal_failure', 'awaiting_review')"
    );
    world.until_count(&settled, 1).await;
    asked_again(&world, action).await;
    if fate == Fate::SleepsPastItsLease {
        first.signal(Signal::CONT).expect("a signal");
    }
    let (label, effects) = expected(kind, point, fate);
    world.until(action, label).await;
    if fate == Fate::SleepsPastItsLease {
        assert!(first.terminate(SOON).await.expect("an end").success(), "{what}: {}", first.log());
    }
    assert!(successor.terminate(SOON).await.expect("an end").success(), "{what}: {}", successor.log());

    assert_eq!(world.db.label(action).await, label, "{what}");
    assert_eq!((world.fake.effects().len(), world.fake.duplicates()), (effects, 0), "{what}");
    assert!(world.fake.effects().iter().all(|effect| effect.other_content == 0), "{what}");
    let sent: Vec<_> = world.seen_of(action).into_iter().filter(|seen| seen.method == "POST").collect();
    assert!(sent.windows(2).all(|two| two[0].key == two[1].key && two[0].body == two[1].body), "{what}: R17");
    assert!(sent.len() <= 2 && (kind != Kind::Nothing || sent.len() <= 1), "{what}: sent {} times", sent.len());
    for seen in &sent {
        let attempt: Uuid = seen.header("outbox-attempt").and_then(|id| id.parse().ok()).expect("an attempt id");
        let sql = "select count(*) from outbox.attempt where action_id = $1 and attempt_id = $2";
        let recorded: i64 = world.db.one(sql, &[&action, &attempt]).await;
        assert!(recorded > 0, "{what}: sent and not recorded");
    }
}

async fn everywhere(point: Point) {
    use Fate::{Dies, SleepsPastItsLease};
    tokio::join!(
        case(point, Kind::Keyed, Dies),
        case(point, Kind::Keyed, SleepsPastItsLease),
        case(point, Kind::Asked, Dies),
        case(point, Kind::Asked, SleepsPastItsLease),
        case(point, Kind::Nothing, Dies),
        case(point, Kind::Nothing, SleepsPastItsLease),
        case(point, Kind::Forgetful, Dies),
    );
}

macro_rules! at {
    ($($name:ident: $point:ident),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            everywhere(Point::$point).await;
        })*

        #[test]
        fn r29_every_place_is_tried() {
            assert_eq!([$(Point::$point),*], Point::ALL);
        }
    };
}

at! {
    r29_before_the_claim: BeforeClaim,
    r29_when_the_claim_has_been_committed_and_its_answer_is_lost: ClaimUnheard,
    r29_after_the_claim: AfterClaim,
    r29_before_the_first_byte: BeforeFirstByte,
    r29_after_the_last_byte: AfterLastByte,
    r29_after_the_answer: AfterAnswer,
    r29_before_the_settle: BeforeSettle,
    r29_when_the_settle_has_been_committed_and_its_answer_is_lost: SettleUnheard,
    r29_after_the_settle: AfterSettle,
}
