//! `sslmode`, as libpq means it, against a real server with good and bad certificates.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use outboxd::core::target::Secret;
use outboxd::ledger::{self, LedgerError};
use outboxd::proving::cluster::{Cluster, ClusterOptions};
use outboxd::proving::session;
use rcgen::{CertificateParams, CertifiedIssuer, KeyPair, date_time_ymd};
use tokio_postgres::Client;

/// A certificate of the server, and how good it is.
pub struct Served {
    pub name: &'static str,
    pub certificate: String,
    pub key: String,
}

pub fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(vec![]).expect("parameters");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, "tests' authority");
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

pub fn served(authority: &CertifiedIssuer<'static, KeyPair>) -> Vec<Served> {
    let of = |name, host: &str, expired: bool, signed: bool| {
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("parameters");
        params.distinguished_name.push(rcgen::DnType::CommonName, host);
        if expired {
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2021, 1, 1);
        }
        let key = KeyPair::generate().expect("a key");
        let certificate = match signed {
            true => params.signed_by(&key, authority),
            false => params.self_signed(&key),
        };
        Served { name, certificate: certificate.expect("a certificate").pem(), key: key.serialize_pem() }
    };
    vec![
        of("good", "127.0.0.1", false, true),
        of("wrong name", "elsewhere.example", false, true),
        of("expired", "127.0.0.1", true, true),
        of("self-signed", "127.0.0.1", false, false),
    ]
}

/// The server reads it at its next look at its configuration.
async fn serve(cluster: &Cluster, admin: &Client, served: &Served) {
    let data = cluster.data_dir();
    let owner = std::fs::metadata(data).expect("a directory");
    for (file, text) in [("server.crt", &served.certificate), ("server.key", &served.key)] {
        let path = data.join(file);
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("closed to others");
        chown(&path, Some(owner.uid()), Some(owner.gid())).expect("the server's");
    }
    admin.batch_execute("alter system set ssl = on").await.expect("set");
    reload(admin).await;
}

/// A reload is announced to the postmaster, which forks what answers us: wait until a new session has it.
async fn reload(admin: &Client) {
    let before: i64 = loaded(admin).await;
    admin.batch_execute("select pg_reload_conf()").await.expect("reloaded");
    while loaded(admin).await == before {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    // The postmaster has read it before it told its children.
}

async fn loaded(admin: &Client) -> i64 {
    let sql = "select (extract(epoch from pg_conf_load_time()) * 1000000)::bigint";
    admin.query_one(sql, &[]).await.expect("a time").get(0)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Session {
    Plain,
    Encrypted,
    None,
}

/// What a pool with this URL gets.
async fn session(url: &str, admin: &Client) -> Session {
    let ledger = match ledger::connect(&Secret::new(url), 1, "test") {
        Ok(ledger) => ledger,
        Err(_) => return Session::None,
    };
    match ledger.check_schema().await {
        Err(LedgerError::NoSchema) => {}
        Err(_) => return Session::None,
        Ok(()) => panic!("there is a schema"),
    }
    let sql = "select s.ssl from pg_stat_ssl s join pg_stat_activity a using (pid) where a.application_name = 'outboxd'
        order by a.backend_start desc limit 1";
    match admin.query_one(sql, &[]).await.expect("our session").get(0) {
        true => Session::Encrypted,
        false => Session::Plain,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sslmode_means_what_libpq_means_by_it() {
    use Session::{Encrypted, None, Plain};
    let cluster = Cluster::start(ClusterOptions::default().set("fsync", "off")).expect("a server");
    let base = cluster.url("postgres", "postgres");
    let admin = session::connect(&base).await.expect("a session");
    let authority = authority();
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().join("root.pem");
    std::fs::write(&root, authority.pem()).expect("written");
    let asks = |words: &str| format!("{base}?{}", words.replace("ROOT", &encoded(&root)));

    const WORDS: [&str; 6] = [
        "sslmode=disable",
        "sslmode=prefer",
        "sslmode=require",
        "sslmode=require&sslrootcert=ROOT",
        "sslmode=verify-ca&sslrootcert=ROOT",
        "sslmode=verify-full&sslrootcert=ROOT",
    ];
    let mut table = vec![];
    for words in WORDS {
        table.push(("no TLS", words, session(&asks(words), &admin).await));
    }
    for served in served(&authority) {
        serve(&cluster, &admin, &served).await;
        for words in WORDS {
            table.push((served.name, words, session(&asks(words), &admin).await));
        }
    }
    let got: Vec<(&str, Vec<Session>)> =
        table.chunks(WORDS.len()).map(|row| (row[0].0, row.iter().map(|cell| cell.2).collect())).collect();
    assert_eq!(
        got,
        [
            ("no TLS", vec![Plain, Plain, None, None, None, None]),
            ("good", vec![Plain, Encrypted, Encrypted, Encrypted, Encrypted, Encrypted]),
            ("wrong name", vec![Plain, Encrypted, Encrypted, Encrypted, Encrypted, None]),
            ("expired", vec![Plain, Encrypted, Encrypted, None, None, None]),
            ("self-signed", vec![Plain, Encrypted, Encrypted, None, None, None]),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn without_anybody_to_trust_a_verified_session_is_refused_with_the_key_to_add() {
    let url = "postgres://u@127.0.0.1:1/d?sslmode=verify-full&sslrootcert=/nowhere/root.pem";
    let error = ledger::connect(&Secret::new(url), 1, "test").err().expect("refused");
    let text = error.to_string();
    assert!(text.contains("sslrootcert") && text.contains("/nowhere/root.pem"), "{text}");
}

fn encoded(path: &Path) -> String {
    path.display().to_string().replace('/', "%2F")
}
