//! What is left to end a server when we are killed before we could.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};

use super::account::Account;

/// `read` ends when the other end of the pipe is gone, however we went. Only the word lets go. `$1` is the cluster's
/// directory, which is removed too.
const SCRIPT: &str = r#"
read -r word
[ "$word" = let-go ] && exit 0
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null
tries=0
while [ -e "$1/data/postmaster.pid" ] && [ "$tries" -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
exec rm -rf "$1"
"#;

/// A small shell that waits for us to disappear. While it exists, a killed test leaves no server and no files.
#[derive(Debug)]
pub(super) struct Leash {
    shell: Child,
    pipe: ChildStdin,
}

impl Leash {
    /// Ties the cluster in `home` to the life of this process.
    pub(super) fn tie(account: Account, home: &Path) -> io::Result<Self> {
        let mut shell = account
            .command("/bin/sh", Path::new("/"))
            .args(["-c", SCRIPT, "outboxd-leash"])
            .arg(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let pipe = shell.stdin.take().ok_or_else(|| io::Error::other("the shell has no standard input"))?;
        Ok(Self { shell, pipe })
    }

    /// Lets the cluster live on (or it is gone already).
    pub(super) fn let_go(mut self) {
        // A shell that has gone has nothing left to end.
        let _ = self.pipe.write_all(b"let-go\n");
        drop(self.pipe);
        let _ = self.shell.wait();
    }
}
