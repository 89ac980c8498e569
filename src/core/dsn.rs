//! The part of a PostgreSQL connection string that speaks of TLS, as libpq means it.
//!
//! The client library knows `sslmode` only as `disable`, `prefer` and `require`, and no files. So these words are taken
//! out of the string here and given their meaning by us; everything else stays as it was written.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

/// How a session is protected. See libpq, "SSL Support" and `sslmode`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tls {
    /// How much is asked for.
    pub mode: TlsMode,
    /// Whose certificates are trusted; `None` = libpq's default file, where it exists.
    pub roots: Option<Roots>,
    /// Our own certificate and its key, both PEM files.
    pub client: Option<(PathBuf, PathBuf)>,
}

/// `sslmode`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TlsMode {
    /// Never.
    Disable,
    /// Where the server offers it. Protects from nobody who can change what is sent.
    Prefer,
    /// Always, whatever certificate the server has; with roots as [`TlsMode::VerifyCa`].
    Require,
    /// Always, with a certificate of a trusted authority.
    VerifyCa,
    /// Always, with a trusted certificate of this very host.
    VerifyFull,
}

/// `sslrootcert`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Roots {
    /// `system`: those of the operating system.
    System,
    /// A PEM file.
    File(PathBuf),
}

/// A connection string, cut in two.
#[derive(Clone, PartialEq, Eq)]
pub struct Dsn {
    /// For the client library. Holds a password: never shown.
    pub rest: String,
    /// For us.
    pub tls: Tls,
}

/// What is wrong with it. Says nothing of the string's other parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DsnError {
    /// Not one of the modes.
    #[error("has an `sslmode` that is none of `disable`, `prefer`, `require`, `verify-ca`, `verify-full`")]
    Mode,
    /// libpq tries without TLS first; nobody who wants that is served by half of it.
    #[error("has `sslmode=allow`, which is not supported; write `prefer`, or better `verify-full`")]
    Allow,
    /// One without the other.
    #[error("has one of `sslcert` and `sslkey`; they go together")]
    HalfACertificate,
    /// libpq refuses it too.
    #[error("has `sslrootcert=system`, which needs `sslmode=verify-full`")]
    SystemNeedsFull,
    /// A quote without its partner.
    #[error("has a quote without its partner")]
    Quote,
}

/// Cuts a connection string in two.
pub fn cut(text: &str) -> Result<Dsn, DsnError> {
    let mut words = Words::default();
    let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
    let rest = if is_url { cut_url(text, &mut words) } else { cut_pairs(text, &mut words)? };
    let tls = words.meaning()?;
    let known = match tls.mode {
        TlsMode::Disable => "disable",
        TlsMode::Prefer => "prefer",
        TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => "require",
    };
    let query = rest.find('@').map_or(rest.as_str(), |at| &rest[at..]);
    let separator = match (is_url, query.contains('?')) {
        (true, true) => "&",
        (true, false) => "?",
        (false, _) => " ",
    };
    Ok(Dsn { rest: format!("{rest}{separator}sslmode={known}"), tls })
}

/// What was taken out.
#[derive(Default)]
struct Words {
    mode: Option<String>,
    root: Option<String>,
    cert: Option<String>,
    key: Option<String>,
}

impl Words {
    /// True where the word is one of ours; of two the last one counts.
    fn take(&mut self, key: &str, value: &str) -> bool {
        let slot = match key {
            "sslmode" => &mut self.mode,
            "sslrootcert" => &mut self.root,
            "sslcert" => &mut self.cert,
            "sslkey" => &mut self.key,
            _ => return false,
        };
        *slot = Some(value.to_owned());
        true
    }

    fn meaning(self) -> Result<Tls, DsnError> {
        let roots = self.root.filter(|root| !root.is_empty()).map(|root| match root.as_str() {
            "system" => Roots::System,
            _ => Roots::File(PathBuf::from(root)),
        });
        let mode = match self.mode.as_deref() {
            Some("disable") => TlsMode::Disable,
            Some("allow") => return Err(DsnError::Allow),
            Some("prefer") => TlsMode::Prefer,
            Some("require") => TlsMode::Require,
            Some("verify-ca") => TlsMode::VerifyCa,
            Some("verify-full") => TlsMode::VerifyFull,
            Some(_) => return Err(DsnError::Mode),
            // With the system's roots libpq's own default is the only mode that makes sense of them.
            None if roots == Some(Roots::System) => TlsMode::VerifyFull,
            None => TlsMode::Prefer,
        };
        if roots == Some(Roots::System) && mode != TlsMode::VerifyFull {
            return Err(DsnError::SystemNeedsFull);
        }
        let client = match (self.cert, self.key) {
            (Some(cert), Some(key)) => Some((PathBuf::from(cert), PathBuf::from(key))),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(DsnError::HalfACertificate),
        };
        Ok(Tls { mode, roots, client })
    }
}

fn cut_url(text: &str, words: &mut Words) -> String {
    // As the client library reads it: credentials end at the first `@`, and a password may hold a `?`.
    let behind_credentials = text.find('@').unwrap_or(0);
    let Some(at) = text[behind_credentials..].find('?').map(|at| behind_credentials + at) else {
        return text.to_owned();
    };
    let (front, query) = (&text[..at], &text[at + 1..]);
    let mut kept = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !words.take(key, &percent_decode_str(value).decode_utf8_lossy()) {
            kept.push(pair);
        }
    }
    match kept.is_empty() {
        true => front.to_owned(),
        false => format!("{front}?{}", kept.join("&")),
    }
}

/// `key=value key='a value'`, as libpq writes it: blanks around `=` allowed, `\` escapes in values.
fn cut_pairs(text: &str, words: &mut Words) -> Result<String, DsnError> {
    let mut kept = String::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let Some((key, after)) = rest.split_once('=') else {
            // Not a pair: the client library says so better.
            kept.push_str(rest);
            break;
        };
        let after = after.trim_start();
        let (value, length) = value(after)?;
        if !words.take(key.trim(), &value) {
            kept.push_str(key.trim());
            kept.push('=');
            kept.push_str(&after[..length]);
            kept.push(' ');
        }
        rest = after[length..].trim_start();
    }
    Ok(kept.trim_end().to_owned())
}

/// A value, and how many bytes of `text` it takes.
fn value(text: &str) -> Result<(String, usize), DsnError> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut chars = text.char_indices().skip(usize::from(quoted));
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' if quoted => return Ok((value, at + 1)),
            c if !quoted && c.is_whitespace() => return Ok((value, at)),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            c => value.push(c),
        }
    }
    if quoted { Err(DsnError::Quote) } else { Ok((value, text.len())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> (String, TlsMode, Option<Roots>) {
        let dsn = cut(text).expect("a connection string");
        (dsn.rest, dsn.tls.mode, dsn.tls.roots)
    }

    #[test]
    fn the_words_of_tls_are_taken_out_and_nothing_else_changes() {
        for (text, rest, mode, root) in [
            ("postgres://u:p%40w@h/d", "postgres://u:p%40w@h/d?sslmode=prefer", TlsMode::Prefer, None),
            (
                "postgresql://u@h/d?application_name=x&sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem",
                "postgresql://u@h/d?application_name=x&sslmode=require",
                TlsMode::VerifyFull,
                Some("/etc/ca.pem"),
            ),
            ("postgres://h/d?sslmode=disable", "postgres://h/d?sslmode=disable", TlsMode::Disable, None),
            (
                "postgres://u:pa?ss@h/d?sslmode=verify-ca",
                "postgres://u:pa?ss@h/d?sslmode=require",
                TlsMode::VerifyCa,
                None,
            ),
            ("postgres://u:pa?ss@h/d", "postgres://u:pa?ss@h/d?sslmode=prefer", TlsMode::Prefer, None),
            (
                r"host=h password='it\'s = a b' sslmode = verify-ca sslrootcert='/a b/c.pem' dbname=d",
                r"host=h password='it\'s = a b' dbname=d sslmode=require",
                TlsMode::VerifyCa,
                Some("/a b/c.pem"),
            ),
            ("host=h", "host=h sslmode=prefer", TlsMode::Prefer, None),
        ] {
            let roots = root.map(|path| Roots::File(PathBuf::from(path)));
            assert_eq!(of(text), (rest.to_owned(), mode, roots), "{text}");
        }
    }

    #[test]
    fn what_libpq_would_not_mean_is_refused() {
        for (text, error) in [
            ("postgres://h/d?sslmode=sideways", DsnError::Mode),
            ("postgres://h/d?sslmode=allow", DsnError::Allow),
            ("postgres://h/d?sslcert=a.pem", DsnError::HalfACertificate),
            ("host=h sslmode=require sslrootcert=system", DsnError::SystemNeedsFull),
            ("host=h password='x", DsnError::Quote),
        ] {
            assert_eq!(cut(text).map(|dsn| dsn.tls), Err(error), "{text}");
        }
        assert_eq!(of("host=h sslrootcert=system").1, TlsMode::VerifyFull);
    }

    #[test]
    fn a_client_certificate_comes_with_its_key() {
        let tls = cut("postgres://h/d?sslcert=c.pem&sslkey=k.pem").expect("a connection string").tls;
        assert_eq!(tls.client, Some((PathBuf::from("c.pem"), PathBuf::from("k.pem"))));
    }
}
