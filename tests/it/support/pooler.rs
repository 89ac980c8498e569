//! A real PgBouncer in front of a database.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use outboxd::proving::session;
use tempfile::TempDir;

use super::world::SOON;

/// One that runs until it is dropped, or its test is killed.
pub struct Pooler {
    /// The database's URL, by way of the pooler.
    pub url: String,
    shell: Child,
    dir: TempDir,
}

/// The shell ends with its standard input, and the pooler with the shell.
const LEASH: &str = r#""$0" "$1" & read -r _; kill "$!""#;

impl Pooler {
    /// In front of the database at `url`, whose host and port are `127.0.0.1:PORT`, in this mode, with so many sessions of
    /// the server for each user. `None`, said aloud, only where the machine cannot have PgBouncer.
    pub async fn start(url: &str, mode: &str, sessions: u32) -> Option<Self> {
        let Some(binary) = binary() else {
            assert!(
                std::env::var_os("OUTBOXD_TESTS_WITHOUT_PGBOUNCER").is_some(),
                "PgBouncer is missing (tests/run installs it, or: apt-get install pgbouncer)"
            );
            // Past the test harness, which would keep it to itself.
            let _ = writeln!(std::io::stderr(), "NOT TESTED HERE: PgBouncer cannot be installed");
            return None;
        };
        let from = url.find("127.0.0.1:").expect("a host") + "127.0.0.1:".len();
        let to = from + url[from..].find('/').expect("a database");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let dir = tempfile::Builder::new().prefix("outboxd-pooler-").tempdir_in("/tmp").expect("a directory");
        let (config, users) = (dir.path().join("pgbouncer.ini"), dir.path().join("users.txt"));
        // It refuses to be root.
        let root = fs::metadata(dir.path()).is_ok_and(|made| std::os::unix::fs::MetadataExt::uid(&made) == 0);
        let account = if root { "user = nobody\n" } else { "" };
        fs::write(
            &config,
            format!(
                "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
                 unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = {mode}\ndefault_pool_size = {sessions}\n\
                 logfile = {}\n{account}",
                &url[from..to],
                users.display(),
                dir.path().join("log").display()
            ),
        )
        .expect("a configuration");
        fs::write(&users, "\"postgres\" \"\"\n").expect("users");
        if root {
            open_to_nobody(dir.path());
        }
        let shell = Command::new("/bin/sh")
            .args(["-c", LEASH])
            .args([&binary, &config])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        let pooler = Self { url: format!("{}{port}{}", &url[..from], &url[to..]), shell, dir };
        let answers = async {
            while session::connect(&pooler.url).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(SOON, answers).await.is_err() {
            panic!("PgBouncer does not answer: {}", pooler.log());
        }
        Some(pooler)
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

fn binary() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    places.map(|dir| dir.join("pgbouncer")).find(|file| file.is_file())
}

fn open_to_nobody(dir: &Path) {
    let passwd = fs::read_to_string("/etc/passwd").expect("accounts");
    let nobody = passwd.lines().find(|line| line.starts_with("nobody:")).expect("nobody");
    let id: Vec<u32> = nobody.split(':').filter_map(|field| field.parse().ok()).collect();
    let _ = fs::set_permissions(dir, fs::Permissions::from_mode(0o700));
    for path in [dir.to_owned(), dir.join("pgbouncer.ini"), dir.join("users.txt")] {
        chown(path, Some(id[0]), Some(id[1])).expect("nobody's");
    }
}
