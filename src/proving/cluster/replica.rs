//! What an asynchronous replica is to a failover: the cluster as it was a while ago, promoted.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use super::{Cluster, ClusterError, StopMode};

impl Cluster {
    fn copied(&self) -> PathBuf {
        self.home.path().join("replica")
    }

    /// Stops it and copies everything it has; it stays stopped. A second copy takes the place of the first.
    ///
    /// # Errors
    /// If it cannot be stopped or copied.
    pub fn stop_and_copy(&mut self) -> Result<(), ClusterError> {
        self.stop(StopMode::Fast)?;
        let copied = self.copied();
        if copied.exists() {
            fs::remove_dir_all(&copied).map_err(ClusterError::io("remove a copy"))?;
        }
        let output = self
            .account
            .command("cp", self.home.path())
            .arg("-a")
            .arg(self.data_dir())
            .arg(&copied)
            .stdin(Stdio::null())
            .output()
            .map_err(ClusterError::io("copy the cluster"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(ClusterError::Io {
                doing: "copy the cluster",
                source: std::io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            }),
        }
    }

    /// Ends the server as in a crash, and starts the copy in its place, on the same port and as a standby. What was
    /// committed since the copy is lost, as where a replica that lags takes over. It answers reads only until
    /// `pg_promote()`, which gives it a timeline of its own.
    ///
    /// # Errors
    /// If there is no copy, or it does not start.
    pub fn fail_over(&mut self) -> Result<(), ClusterError> {
        self.stop(StopMode::Immediate)?;
        let (data, copied) = (self.data_dir().to_owned(), self.copied());
        let signal = copied.join("standby.signal");
        fs::rename(&data, self.home.path().join("lost"))
            .and_then(|()| fs::write(&signal, ""))
            .and_then(|()| self.account.own(&signal))
            .and_then(|()| fs::rename(&copied, &data))
            .map_err(ClusterError::io("put the copy in its place"))?;
        self.resume()
    }
}
