//! The commands of an operator, as processes.

use std::path::PathBuf;

use serde_json::Value;
use tokio::process::Command;

use super::World;
use super::world::SOON;

/// What a command said, and how it ended.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    /// What it said where it must have done what it was asked.
    pub fn done(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{self:?}");
        self.out
    }

    /// The same, as JSON.
    pub fn json(self) -> Value {
        let out = self.done();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error} in {out}"))
    }

    /// What it said of why it did not do it.
    pub fn refused(self) -> String {
        assert_eq!((self.code, self.out.as_str()), (1, ""), "{self:?}");
        self.err
    }
}

impl World {
    /// Runs a command with this configuration, to its end.
    pub async fn says(&self, arguments: &[&str]) -> Said {
        self.says_with(&self.config(), arguments).await
    }

    /// Runs a command with another configuration, to its end.
    pub async fn says_with(&self, config: &str, arguments: &[&str]) -> Said {
        std::fs::write(self.config_file(), config).expect("a file");
        let output = Command::new(Self::binary())
            .args(arguments)
            .arg("--config")
            .arg(self.config_file())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(SOON, output).await.expect("an end").expect("output");
        Said {
            code: output.status.code().expect("an exit code"),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// Where commands find their configuration.
    pub fn config_file(&self) -> PathBuf {
        self.dir.path().join("outboxd.toml")
    }
}

/// A page must hold each of these, wherever its lines are wrapped.
pub fn holds(text: &str, parts: &[&str]) {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(flat.contains(part), "{part:?} is not in:\n{text}");
    }
}
