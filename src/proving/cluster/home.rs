//! The directory of a private cluster: made, handed over, filled by `initdb`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;

use super::account::Account;
use super::binaries::Binaries;
use super::{ClusterError, SUPERUSER};

/// Small, quiet and durable. What a test asks for comes after it and wins.
const SETTINGS: &str = "\
unix_socket_directories = ''
shared_buffers = 32MB
max_connections = 100
max_wal_size = 256MB
log_min_messages = warning
log_line_prefix = '%m [%p] '
log_timezone = UTC
timezone = UTC
cluster_name = 'outboxd-proving'
";

/// A directory of the server's account in the first temporary directory that this account can enter.
pub(super) fn make(account: Account) -> Result<TempDir, ClusterError> {
    let candidates = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()];
    let reachable = |dir: &PathBuf| match account {
        Account::Own => dir.is_dir(),
        Account::Lent { .. } => {
            dir.canonicalize().is_ok_and(|real| real.ancestors().all(|d| d.metadata().is_ok_and(|m| m.mode() & 1 == 1)))
        }
    };
    let parent = candidates.into_iter().find(reachable).ok_or(ClusterError::NoDirectory)?;
    let home = tempfile::Builder::new()
        .prefix("outboxd-pg-")
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir_in(parent)
        .map_err(ClusterError::io("make a directory"))?;
    account.own(home.path()).map_err(ClusterError::io("hand over a directory"))?;
    Ok(home)
}

/// Makes the data directory: UTF-8, C locale, one superuser, trust for 127.0.0.1 and nobody else.
pub(super) fn init(
    binaries: &Binaries,
    account: Account,
    home: &Path,
    settings: &[(String, String)],
) -> Result<(), ClusterError> {
    let data = home.join("data");
    let output = account
        .command(binaries.path("initdb"), home)
        .args(["--username", SUPERUSER, "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--pgdata"])
        .arg(&data)
        .stdin(Stdio::null())
        .output()
        .map_err(ClusterError::io("run initdb"))?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        return Err(ClusterError::Initdb { output: String::from_utf8_lossy(&said).trim().to_owned() });
    }
    let own = settings.iter().map(|(name, value)| format!("{name} = '{}'\n", value.replace('\'', "''")));
    let conf = SETTINGS.to_owned() + &own.collect::<String>();
    let trust = "host all all 127.0.0.1/32 trust\nhost replication all 127.0.0.1/32 trust\n";
    let write = |name, text: &str, append| {
        // Opened as they are: the files stay their owner's.
        let mut file = fs::File::options().write(true).append(append).truncate(!append).open(data.join(name))?;
        file.write_all(text.as_bytes())
    };
    write("postgresql.conf", &conf, true)
        .and_then(|()| write("pg_hba.conf", trust, false))
        .map_err(ClusterError::io("write PostgreSQL's settings"))?;
    Ok(())
}
