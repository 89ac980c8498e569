//! Where PostgreSQL's server binaries are on this machine.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::ClusterError;

/// What a cluster needs beside each other in one directory.
const NEEDED: [&str; 2] = ["initdb", "postgres"];

/// Where distributions put them: a parent, the prefix of a version's directory, and what follows the version.
const USUAL: [(&str, &str, &str); 9] = [
    ("/usr/lib/postgresql", "", "bin"), // Debian, Ubuntu
    ("/usr", "pgsql-", "bin"),          // the PostgreSQL project's RPMs
    ("/usr/lib", "postgresql", "bin"),  // openSUSE
    ("/usr/libexec", "postgresql", ""), // Alpine
    ("/opt/homebrew/opt", "postgresql", "bin"),
    ("/usr/local/opt", "postgresql", "bin"),
    ("/home/linuxbrew/.linuxbrew/opt", "postgresql", "bin"),
    ("/Library/PostgreSQL", "", "bin"), // the EDB installer
    ("/Applications/Postgres.app/Contents/Versions", "", "bin"),
];

/// A directory that holds every binary a cluster needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binaries {
    dir: PathBuf,
}

impl Binaries {
    /// Those of `PATH`, else the newest of the usual places.
    pub(super) fn find() -> Result<Self, ClusterError> {
        let usual = USUAL.map(|(parent, prefix, rest)| (Path::new(parent), prefix, rest));
        Self::find_in(env::var_os("PATH").as_deref(), &usual)
    }

    /// Those of this directory.
    pub(super) fn of(dir: &Path) -> Result<Self, ClusterError> {
        complete(dir).ok_or_else(|| ClusterError::NoBinaries { looked_in: dir.display().to_string() })
    }

    fn find_in(path: Option<&OsStr>, usual: &[(&Path, &str, &str)]) -> Result<Self, ClusterError> {
        let in_path = path.into_iter().flat_map(env::split_paths).find_map(|dir| complete(&dir));
        in_path
            .or_else(|| {
                let mut found: Vec<_> = usual.iter().flat_map(|&(p, prefix, rest)| versions(p, prefix, rest)).collect();
                found.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
                found.into_iter().find_map(|(_, dir)| complete(&dir))
            })
            .ok_or_else(|| {
                let places =
                    usual.iter().map(|(parent, prefix, rest)| format!("{}/{prefix}*/{rest}", parent.display()));
                let looked_in = std::iter::once("PATH".to_owned()).chain(places).collect::<Vec<_>>().join(", ");
                ClusterError::NoBinaries { looked_in }
            })
    }

    /// The full path of one of them.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// `dir` if everything needed is in it. Links are followed first: a server finds its libraries from its real place.
fn complete(dir: &Path) -> Option<Binaries> {
    let real = dir.join(NEEDED[0]).canonicalize().ok()?.parent()?.to_owned();
    NEEDED.iter().all(|name| real.join(name).is_file()).then_some(Binaries { dir: real })
}

/// The versions found under `parent`, each with its directory of binaries. One without a number sorts last.
fn versions(parent: &Path, prefix: &str, rest: &str) -> Vec<((u32, u32), PathBuf)> {
    let entries = parent.read_dir().into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((version(name.strip_prefix(prefix)?), entry.path().join(rest)))
        })
        .collect()
}

/// "17", "9.6", "@17", "-17" or "" as something to sort by.
fn version(text: &str) -> (u32, u32) {
    let (major, minor) = text.trim_start_matches(['@', '-']).split_once('.').unwrap_or((text, ""));
    (major.trim_start_matches(['@', '-']).parse().unwrap_or(0), minor.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(root: &Path, place: &str, names: &[&str]) -> PathBuf {
        let dir = root.join(place);
        std::fs::create_dir_all(&dir).unwrap();
        for name in names {
            std::fs::write(dir.join(name), "").unwrap();
        }
        dir.canonicalize().unwrap()
    }

    #[test]
    fn the_newest_complete_version_of_the_usual_places_is_taken() {
        let root = tempfile::tempdir().unwrap();
        install(root.path(), "lib/9.6/bin", &NEEDED);
        install(root.path(), "lib/13/bin", &NEEDED);
        install(root.path(), "lib/18/bin", &["initdb"]);
        let newest = install(root.path(), "opt/postgresql@17/bin", &NEEDED);
        let (lib, opt) = (root.path().join("lib"), root.path().join("opt"));
        let found = Binaries::find_in(None, &[(&lib, "", "bin"), (&opt, "postgresql", "bin")]).unwrap();
        assert_eq!(found.dir, newest);
    }

    #[test]
    fn path_comes_first_and_its_links_are_followed() {
        let root = tempfile::tempdir().unwrap();
        let real = install(root.path(), "real", &NEEDED);
        install(root.path(), "lib/18/bin", &NEEDED);
        let links = install(root.path(), "links", &[]);
        std::os::unix::fs::symlink(real.join("initdb"), links.join("initdb")).unwrap();
        let path = env::join_paths([root.path().join("missing"), links]).unwrap();
        let found = Binaries::find_in(Some(&path), &[(&root.path().join("lib"), "", "bin")]).unwrap();
        assert_eq!(found.dir, real);
    }

    #[test]
    fn missing_binaries_are_reported_with_what_to_type() {
        let root = tempfile::tempdir().unwrap();
        let said = Binaries::find_in(None, &[(root.path(), "pgsql-", "bin")]).unwrap_err().to_string();
        assert!(said.contains("apt-get install postgresql"), "{said}");
        assert!(said.contains("PATH, "), "{said}");
        assert!(said.contains("pgsql-*/bin"), "{said}");
    }
}
