//! Each kind of contract as TOML: an operation, and what its destination promises.

use std::fmt::Write as _;

use super::kinds::{
    ABSENCE, Kind, RESEND_WITHIN, REVIEW_AFTER, SHORT_MARGIN, SHORT_WINDOW, TENANT_MAX, TIMEOUT, Version,
};
use super::settings::Pace;

impl Kind {
    /// Its operation and its contract, under one of two versions of the configuration.
    pub fn toml(self, version: Version, pace: Pace) -> String {
        let (name, way) = (self.name(), self.way());
        let request = match self == Self::Natural {
            true => "method = \"PUT\", path = \"/natural/{key}\"".to_owned(),
            false => format!("method = \"POST\", path = \"/{name}\""),
        };
        let effect = match self {
            Self::ReadOnly => "read_only",
            Self::Idempotent => "idempotent",
            Self::Unreconcilable => "unreconcilable",
            Self::Keyed | Self::KeyedShort | Self::KeyedThenLookup | Self::Conflict | Self::Natural => "keyed",
            Self::Lookup | Self::LookupNever | Self::Cancel | Self::Moving | Self::Refund | Self::Receiver => "keyed",
        };
        let destination = match self == Self::Moving {
            true => "moving".to_owned(),
            false if self.is_rated() => "rated".to_owned(),
            false => format!("way{way}"),
        };
        let (attempts, backoff) = match version {
            Version::First => (30, "initial = \"200ms\", max = \"2s\""),
            Version::Second => (25, "initial = \"300ms\", multiplier = 1.5, max = \"1500ms\""),
        };
        let mut text = format!(
            "\n[operation.\"drill.{name}\"]\ndestination = \"{destination}\"\nrequest = {{ {request} }}\n\
             contract = \"drill.{name}\"\neffect = \"{effect}\"\nmeaning = \"{}\"\nowner = \"drill\"\n\
             timeout = \"{}ms\"\nattempts_max = {attempts}\nelapsed_max = \"90s\"\nbackoff = {{ {backoff} }}\n\
             review_after = \"{}s\"\nresend_within = \"{}s\"\n\n[contract.\"drill.{name}\"]\n{}\n",
            self.promise(),
            TIMEOUT.as_millis(),
            REVIEW_AFTER.as_secs(),
            RESEND_WITHIN.as_secs(),
            self.contract(),
        );
        let rule = |class: &str, error: &str, wait: &str| {
            format!(
                "[[contract.\"drill.{name}\".rule]]\nwhen = {{ status = \"409\", json = {{ \"/error\" = \"{error}\" }} }}\n\
                 class = \"{class}\"\n{wait}"
            )
        };
        if self.is_bounded() && pace == Pace::Kept {
            text = text.replacen("\nowner", &format!("\ntenant_max_in_flight = {TENANT_MAX}\nowner"), 1);
        }
        if self.holds() {
            text = text.replacen("\nowner", "\nhold_on_failure = true\nowner", 1);
        }
        if self.memory().is_some() {
            let _ = write!(text, "{}", rule("in_flight", "in_progress", "wait = \"500ms\"\n"));
        }
        if self == Self::Conflict {
            let _ = write!(text, "{}", rule("duplicate", "known", ""));
        }
        text
    }

    /// The contract's own lines.
    fn contract(self) -> String {
        let forever =
            "key = { mode = \"dedupe\", place = \"header:Idempotency-Key\", window = \"24h\", margin = \"1h\" }";
        let short = format!(
            "key = {{ mode = \"dedupe\", place = \"header:Idempotency-Key\", window = \"{}s\", margin = \"{}s\" }}",
            SHORT_WINDOW.as_secs(),
            SHORT_MARGIN.as_secs()
        );
        let none = "key = { mode = \"none\" }";
        let receipt = "receipt = { id = \"json:/id\" }";
        let asking = |absence: &str| {
            format!(
                "request = {{ method = \"GET\", path = \"/lookup\", query = {{ {{BY}} }} }}, \
                 found = {{ status = \"200\", json = {{ \"/items/0/id\" = \"*\" }} }}, \
                 absent = {{ status = \"200\", json = {{ \"/items\" = \"[]\" }} }}, receipt = \"json:/items/0/id\", \
                 compare = {{ \"/items/0/text\" = \"json:/text\" }}, first_after = \"500ms\", repeat = [\"2s\"], \
                 absence = \"{absence}\""
            )
        };
        let settled = format!("after:{}s", ABSENCE.as_secs());
        let by_ref = |absence: &str| {
            let asking = asking(absence).replace("{BY}", "reference = \"{ref}\"");
            format!("ref = {{ place = \"json:/reference\" }}\nlookup = {{ by = \"ref\", {asking} }}")
        };
        let by_key = asking(&settled).replace("{BY}", "key = \"{key}\"");
        match self {
            Self::Keyed | Self::Moving | Self::Refund => {
                format!("reconcile = [\"resend\", \"review\"]\n{forever}\n{receipt}")
            }
            Self::KeyedShort => format!("reconcile = [\"resend\", \"review\"]\n{short}\n{receipt}"),
            Self::KeyedThenLookup => format!(
                "reconcile = [\"resend\", \"lookup\", \"review\"]\n{short}\nlookup = {{ by = \"key\", {by_key} }}\n{receipt}"
            ),
            Self::Conflict => {
                format!("reconcile = [\"resend\", \"review\"]\n{}\n{receipt}", forever.replace("dedupe", "conflict"))
            }
            Self::Natural => format!("reconcile = [\"resend\", \"review\"]\nkey = {{ mode = \"natural\" }}\n{receipt}"),
            Self::Lookup => format!("reconcile = [\"lookup\", \"review\"]\n{}\n{receipt}", by_ref(&settled)),
            Self::LookupNever => format!("reconcile = [\"lookup\", \"review\"]\n{}\n{receipt}", by_ref("never")),
            Self::Cancel => format!(
                "reconcile = [\"resend\", \"cancel\", \"review\"]\n{short}\n\
                 cancel = {{ request = {{ method = \"POST\", path = \"/cancel/{{key}}\" }}, \
                 done = {{ status = \"200\", json = {{ \"/cancelled\" = \"*\" }} }}, first_after = \"1s\", \
                 repeat = [\"2s\"], absence = \"{settled}\" }}\n{receipt}"
            ),
            Self::Receiver => format!(
                "reconcile = [\"resend\", \"review\"]\nkey = {{ mode = \"receiver\", place = \"header:Idempotency-Key\" }}\n{receipt}"
            ),
            Self::Idempotent | Self::ReadOnly => format!("reconcile = [\"resend\", \"review\"]\n{none}\n{receipt}"),
            Self::Unreconcilable => format!("reconcile = [\"review\"]\n{none}\n{receipt}"),
        }
    }
}
