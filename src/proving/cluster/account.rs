//! Who runs a private server. PostgreSQL refuses to run as root, so root lends it another account.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use super::ClusterError;

/// The accounts root lends, in this order.
const LENT: [&str; 2] = ["postgres", "nobody"];

/// Under whose name the server's processes run and who owns its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Account {
    /// Whoever runs this.
    Own,
    /// Another one, because this is root.
    Lent { uid: u32, gid: u32 },
}

impl Account {
    /// The account to use here.
    pub(super) fn pick() -> Result<Self, ClusterError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Own);
        }
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        LENT.iter().find_map(|name| look_up(&passwd, name)).ok_or(ClusterError::NoAccount)
    }

    /// A command that will run under this account, with no group but its own, and away from our terminal's signals.
    pub(super) fn command(self, program: impl AsRef<std::ffi::OsStr>, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(dir).env("LC_ALL", "C").process_group(0);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG")) {
            command.env_remove(name);
        }
        match self {
            Self::Own => {}
            // With root's uid given up, the standard library drops the supplementary groups as well.
            Self::Lent { uid, gid } => {
                command.uid(uid).gid(gid);
            }
        }
        command
    }

    /// Hands a file or directory over to this account.
    pub(super) fn own(self, path: &Path) -> std::io::Result<()> {
        match self {
            Self::Own => Ok(()),
            Self::Lent { uid, gid } => chown(path, Some(uid), Some(gid)),
        }
    }
}

fn look_up(passwd: &str, name: &str) -> Option<Account> {
    let fields: Vec<_> = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|f| f[0] == name)?;
    let (uid, gid) = (fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?);
    (uid != 0).then_some(Account::Lent { uid, gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_read_from_passwd_and_root_is_never_lent() {
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\nfake:x:0:0::/:\nnobody:x:65534:65533:nobody:/:/usr/sbin/nologin\n";
        assert_eq!(look_up(passwd, "nobody"), Some(Account::Lent { uid: 65534, gid: 65533 }));
        assert_eq!(look_up(passwd, "fake"), None);
        assert_eq!(look_up(passwd, "postgres"), None);
    }
}
