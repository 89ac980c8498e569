//! Secrets: from an environment variable or a file, used as they are (B77), never shown.

#![allow(clippy::wildcard_enum_match_arm, reason = "TOML's values are not our enum: what is not expected is refused")]

use std::io::Read as _;
use std::path::{Path, PathBuf};

use toml::de::DeValue;

use super::problem::{At, Reported};
use super::table::{Table, type_of};
use crate::core::target::Secret;

/// Which secrets are read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Secrets {
    /// All of them; one that is unset or empty is a problem.
    Resolve,
    /// The database's connection string alone; the others are left empty: for commands that send nothing.
    Skip,
    /// None that stands elsewhere than in the file: for commands that only read it.
    Ignore,
}

/// Where secrets come from.
pub(super) struct Sources<'a> {
    pub(super) secrets: Secrets,
    /// The environment.
    pub(super) env: &'a dyn Fn(&str) -> Option<String>,
    /// The directory of the configuration file, which paths start from.
    pub(super) directory: PathBuf,
}

/// Why a file could not be read, in words that follow its name.
pub(super) fn why_unreadable(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => "does not exist".to_owned(),
        ErrorKind::PermissionDenied => "may not be read by this user".to_owned(),
        ErrorKind::InvalidData => "is not UTF-8".to_owned(),
        kind => format!("cannot be read: {kind}"),
    }
}

/// Longer than any credential.
const FILE_MAX_BYTES: u64 = 64 * 1024;

impl Sources<'_> {
    /// A destination's secret: `None` where it is not given.
    pub(super) fn secret(&self, table: &Table<'_>, key: &str) -> Result<Option<Secret>, Reported> {
        match table.item(key).map(|item| item.value) {
            None => Ok(None),
            Some(DeValue::Table(_)) => self.elsewhere(table, key, self.secrets == Secrets::Resolve),
            Some(DeValue::String(_)) => {
                Err(table
                    .wrong(key, "must not stand in this file; write `{ env = \"NAME\" }` or `{ file = \"path\" }`"))
            }
            Some(other) => Err(table.wrong(
                key,
                format!("must be `{{ env = \"NAME\" }}` or `{{ file = \"path\" }}`, found {}", type_of(other)),
            )),
        }
    }

    /// A connection string: the same, or in the file itself. Empty where it stands elsewhere and is not read.
    pub(super) fn connection_string(&self, table: &Table<'_>, key: &str) -> Result<Option<Secret>, Reported> {
        match table.item(key).map(|item| item.value) {
            Some(DeValue::String(text)) if text.is_empty() => Err(table.wrong(key, "must not be empty")),
            Some(DeValue::String(text)) => Ok(Some(Secret::new(text.as_ref()))),
            Some(DeValue::Table(_)) => self.elsewhere(table, key, self.secrets != Secrets::Ignore),
            Some(other) => Err(table.wrong(
                key,
                format!(
                    "must be a string, `{{ env = \"NAME\" }}` or `{{ file = \"path\" }}`, found {}",
                    type_of(other)
                ),
            )),
            None => Ok(None),
        }
    }

    /// A list of a destination's secrets, at least one, each with where it stands. Those that are not read are left out.
    pub(super) fn secrets<'t>(&self, table: &Table<'t>, key: &str) -> Result<Vec<(Secret, At<'t>)>, Reported> {
        let places = table.list(key)?;
        if places.is_empty() {
            return Err(match table.item(key) {
                Some(_) => table.wrong(key, "must not be an empty list"),
                None => table.missing(key),
            });
        }
        let resolve = self.secrets == Secrets::Resolve;
        let read = |place: &Table<'t>| {
            let read = self.place(place, resolve);
            let read =
                read.map_err(|complaint| table.report(place.at, format!("`{key}` in {} {complaint}", table.title())));
            Ok(read?.map(|secret| (secret, place.at)))
        };
        let read: Vec<_> = places.iter().map(read).collect();
        read.into_iter().filter_map(Result::transpose).collect()
    }

    fn elsewhere(&self, table: &Table<'_>, key: &str, resolve: bool) -> Result<Option<Secret>, Reported> {
        let Some(place) = table.sub(key)? else { return Ok(None) };
        let read = self.place(&place, resolve).map_err(|complaint| table.wrong(key, complaint));
        Ok(Some(read?.unwrap_or_else(|| Secret::new(""))))
    }

    /// What stands at a place; `None` where it is not read.
    fn place(&self, place: &Table<'_>, resolve: bool) -> Result<Option<Secret>, String> {
        // What is no string has been reported.
        let (Ok(env), Ok(file)) = (place.text_if("env"), place.text_if("file")) else { return Ok(None) };
        match (env, file) {
            (Some(name), None) if resolve => self.env_value(&name).map(Some),
            (None, Some(path)) if resolve => self.file_content(Path::new(&path)).map(Some),
            (Some(_), None) | (None, Some(_)) => Ok(None),
            (Some(_), Some(_)) | (None, None) => Err("needs either `env` or `file`".to_owned()),
        }
    }

    fn env_value(&self, name: &str) -> Result<Secret, String> {
        match (self.env)(name) {
            None => Err(format!("needs the environment variable {name}, which is not set")),
            Some(value) if value.trim().is_empty() => {
                Err(format!("needs the environment variable {name}, which is empty"))
            }
            Some(value) => Ok(Secret::new(value)),
        }
    }

    fn file_content(&self, path: &Path) -> Result<Secret, String> {
        let path = self.directory.join(path);
        let refused = |why: &str| format!("needs the file {}, which {why}", path.display());
        let mut text = String::new();
        std::fs::File::open(&path)
            .and_then(|file| file.take(FILE_MAX_BYTES + 1).read_to_string(&mut text))
            .map_err(|error| refused(&why_unreadable(&error)))?;
        if text.len() as u64 > FILE_MAX_BYTES {
            return Err(refused("is longer than 64 KiB"));
        }
        let line = text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
        if line.trim().is_empty() { Err(refused("is empty")) } else { Ok(Secret::new(line)) }
    }
}
