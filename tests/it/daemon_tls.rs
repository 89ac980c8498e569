//! A daemon and a destination behind TLS.

use crate::database_tls::{Served, authority, served};
use crate::support::world::SOON;
use crate::support::{Front, World};

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_certificate_costs_no_attempt_and_a_good_one_lets_all_of_it_go() {
    let mut world = World::new().await;
    let authority = authority();
    std::fs::write(world.dir.path().join("ca.pem"), authority.pem()).expect("written");
    world.destination = "tls = { roots = { file = \"ca.pem\" } }".into();
    let certificates = served(&authority);
    let of = |name: &str| certificates.iter().find(|served| served.name == name).expect("a certificate");
    let Served { certificate, key, .. } = of("expired");
    let front = Front::start(world.fake.addr(), certificate, key).await;
    let daemon = world.start_with(&world.config().replace(&world.fake.base_url(), &front.base_url()));
    let action = world.enqueue("n-1").await;
    world
        .until_true(&format!(
            "exists (select from outbox.delivery where action_id = '{action}' and reason = 'tls_failed')"
        ))
        .await;

    // Nothing arrived, nothing counts, and the history says what was wrong.
    let standing = world.standing(action).await;
    assert_eq!((standing.attempts, standing.in_doubt), (0, false));
    let first = &world.history(action).await[0];
    assert_eq!(first.evidence, "not_sent");
    assert!(first.detail.as_deref().is_some_and(|detail| detail.contains("expired")), "{first:?}");
    assert_eq!(world.fake.tally().connections, 0);

    for name in ["wrong name", "self-signed"] {
        front.show(&of(name).certificate, &of(name).key);
        let mark = world.standing(action).await.fence;
        world
            .until_true(&format!(
                "exists (select from outbox.delivery where action_id = '{action}' and fence > {mark} + 1)"
            ))
            .await;
        assert_eq!((world.standing(action).await.attempts, world.fake.tally().connections), (0, 0), "{name}");
    }
    front.show(&of("good").certificate, &of("good").key);
    world.until(action, "succeeded").await;
    assert_eq!(world.seen_of(action).len(), 1);
    daemon.logged("outboxd started", SOON).await.expect("started");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_certificate_shows_at_check_and_stops_the_start() {
    let mut world = World::new().await;
    let authority = authority();
    let certificates = served(&authority);
    let broken = "-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n";
    let files = [
        ("broken.pem", broken),
        ("cert.pem", &certificates[0].certificate),
        ("key.pem", &certificates[0].key),
        ("other-key.pem", &certificates[1].key),
    ];
    for (name, text) in files {
        std::fs::write(world.dir.path().join(name), text).expect("written");
    }
    let identity =
        |key: &str| format!("tls = {{ certificate = {{ file = \"cert.pem\" }}, key = {{ file = \"{key}\" }} }}");
    for (tls, wrong) in [
        ("tls = { roots = { file = \"broken.pem\" } }".to_owned(), "`roots` holds no certificate that can be read"),
        (identity("other-key.pem"), "`certificate` and `key` cannot be used together"),
    ] {
        world.destination = tls;
        let checked = world.command("check", &world.config()).await;
        let said = String::from_utf8_lossy(&checked.stderr);
        assert_eq!(checked.status.code(), Some(78), "{said}");
        assert!(said.contains("`tls` of [destination.fake]") && said.contains(wrong), "{said}");
        let mut daemon = world.start();
        assert_eq!(daemon.ended(SOON).await.expect("it ends").code(), Some(78));
        assert!(daemon.log().contains(wrong), "{}", daemon.log());
    }
    world.destination = identity("key.pem");
    assert!(world.command("check", &world.config()).await.status.success());
}
