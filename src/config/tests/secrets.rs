//! Secrets: used as they are (B77), never shown (B79).

use super::*;
use crate::core::target::{Auth, Secret};

#[test]
fn b77_secrets_are_used_as_they_are() {
    let directory = tempfile::tempdir().expect("a directory");
    let secret = "a\\c\"$G}'#${HOME}";
    std::fs::write(directory.path().join("token"), format!("{secret}\n")).expect("written");
    let name = directory.path().join("outboxd.toml");
    let env = |variable: &str| (variable == "P").then(|| format!("{secret}\n"));
    let text = "[database]\nurl = 'postgres://u:$x{y}@h/d'\n[destination.a]\nbase_url = \"http://a\"\n\
         auth = { bearer = { file = \"token\" } }\n[destination.b]\nbase_url = \"http://b\"\n\
         auth.basic = { user = \"u\", password = { env = \"P\" } }\n";
    let config = Config::parse(text, &name.display().to_string(), Secrets::Resolve, &env).expect("accepted");
    assert_eq!(config.database.url.expose(), "postgres://u:$x{y}@h/d");
    assert_eq!(config.targets["a"].auth, Auth::Bearer(Secret::new(secret)));
    let password = Secret::new(format!("{secret}\n"));
    assert_eq!(config.targets["b"].auth, Auth::Basic { user: "u".into(), password });
}

#[test]
fn b77_missing_secrets_are_all_named_at_once_or_not_read() {
    let text = format!(
        "{DATABASE}direct_url = {{ env = \"NONE\" }}\n[destination.a]\nbase_url = \"http://a\"\nauth.bearer.env = \"UNSET\"\n\
         [destination.b]\nbase_url = \"http://b\"\nauth = {{ header = {{ name = \"X-Key\", value = {{ env = \"EMPTY\" }} }} }}\n\
         [destination.c]\nbase_url = \"http://c\"\nauth = {{ bearer = {{ file = \"no/such\" }} }}\n\
         [destination.e]\nbase_url = \"http://c\"\nauth = {{ bearer = {{ env = \"BROKEN\" }} }}\n"
    );
    assert_eq!(
        refused(&text),
        [
            "outboxd.toml:3: `direct_url` in [database] needs the environment variable NONE, which is not set",
            "outboxd.toml:6: `bearer` in [destination.a.auth] needs the environment variable UNSET, which is not set",
            "outboxd.toml:9: `value` in [destination.b.auth.header] needs the environment variable EMPTY, which is empty",
            "outboxd.toml:12: `bearer` in [destination.c.auth] needs the file no/such, which does not exist",
            "outboxd.toml:15: `bearer` in [destination.e.auth] is a secret with a line break or control character, which \
             no header can carry",
        ]
    );
    let skipped = Config::parse(&text, "outboxd.toml", Secrets::Skip, &env).expect_err("the database's is always read");
    assert_eq!(skipped.problems.len(), 1);
}

#[test]
fn b79_no_message_shows_a_secret() {
    let urls = [
        "postgres://u:hunter2@h:port/d",
        "postgres://u:hunter2@h@h/d",
        "postgres://u:p@hunter2/x@h/d",
        "postgres://u:hunter2%zz%ff@/d",
        "postgres://u%ff:hunter2@h/d",
        "postgres://u:hunter2@h/d?hunter2",
        "postgres://u:hunter2@h/d?hunter2=1",
        "postgres://u:hunter2",
        "host=h user=u password=hunter2 hunter2",
        "host=h user=u password='hunter2",
        "host=h user=u password=x hunter2=y",
        "host=hunter2! user=u",
        "hunter2",
        "user=hunter2",
    ];
    for url in urls {
        let text = format!("[database]\nurl = '''{url}'''\ndirect_url = '''{url}'''\n");
        let refusal = parse(&text).expect_err(url);
        assert_eq!(refusal.problems.len(), 2, "{url}: {refusal}");
        assert!(refusal.to_string().contains("outboxd.toml:2: `url` in [database] "), "{refusal}");
        assert!(!format!("{refusal} {refusal:?}").contains("hunter2"), "{url}: {refusal}");
    }
    let literal = "auth = { bearer = \"hunter2\" }";
    assert_eq!(
        refused(&file(literal, "", "")),
        [
            "outboxd.toml:5: `bearer` in [destination.d.auth] must not stand in this file; write `{ env = \"NAME\" }` or \
          `{ file = \"path\" }`"
        ]
    );
    let broken = "[database]\nurl = \"postgres://u:hunter2\"@h/d\"\n";
    assert!(!parse(broken).expect_err("refused").to_string().contains("hunter2"));
}

#[test]
fn b79_host_database_and_user_are_shown_and_the_password_is_not() {
    let config = accepted(
        &file("auth = { bearer = { env = \"TOKEN\" } }", "", "")
            .replace("\"postgres://outboxd@localhost/app\"", "{ env = \"DATABASE_URL\" }"),
    );
    assert_eq!(config.database.place().to_string(), "outboxd@db1:6432/app");
    let shown = format!("{} {config:?}", config.describe());
    assert!(shown.contains("outboxd@db1:6432/app") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn sslmode_is_what_libpq_knows() {
    for (url, complaint) in [
        ("postgres://u@h/d?sslmode=sideways", "has an `sslmode` that is none of"),
        ("host=h sslmode=allow", "has `sslmode=allow`, which is not supported"),
        ("postgres://u@h/d?sslcert=c.pem", "has one of `sslcert` and `sslkey`"),
    ] {
        let told = refused(&format!("[database]\nurl = \"{url}\"\n"));
        assert!(told[0].starts_with(&format!("outboxd.toml:2: `url` in [database] {complaint}")), "{told:?}");
    }
    for mode in ["disable", "prefer", "require", "verify-ca", "verify-full"] {
        accepted(&format!("[database]\nurl = \"postgres://u@h/d?sslmode={mode}&sslrootcert=ca.pem\"\n"));
    }
}

#[test]
fn tls_of_a_destination_is_pem_and_a_certificate_has_its_key() {
    let dir = tempfile::tempdir().expect("a directory");
    let name = |file: &str| dir.path().join(file).display().to_string();
    std::fs::write(name("ca.pem"), "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n").expect("written");
    std::fs::write(name("no.pem"), "hunter2").expect("written");
    let with = |tls: &str| file(&format!("tls = {{ {tls} }}"), "", "").replace("http://d", "https://d");
    accepted(&with(&format!("roots = {{ file = {:?} }}", name("ca.pem"))));
    let told = refused(&with(&format!("roots = {{ file = {:?} }}", name("no.pem"))));
    assert!(told[0].contains("`roots`") && told[0].contains("BEGIN CERTIFICATE") && !told[0].contains("hunter2"));
    let told = refused(&with(&format!("certificate = {{ file = {:?} }}", name("ca.pem"))));
    assert!(told[0].contains("`key`"), "{told:?}");
}
