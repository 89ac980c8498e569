//! `[[contract.NAME.rule]]`: what answers mean.

#![allow(clippy::wildcard_enum_match_arm, reason = "TOML's values are not our enum: what is not expected is refused")]

use toml::de::DeValue;

use super::matcher;
use super::nearest::nearest;
use super::problem::Reported;
use super::table::{Table, type_of};
use crate::core::contract::{Class, Rule, Rung};

const RUNGS: [Rung; 4] = [Rung::Resend, Rung::Lookup, Rung::Cancel, Rung::Review];

pub(super) fn parse(table: &Table<'_>) -> Result<Rule, Reported> {
    let when = matcher::when(table, "when");
    let class = table.choice("class", &Class::ALL);
    let then = rungs(table, "then");
    let wait = table.duration_if("wait");
    Ok(Rule { when: when?, class: class?, then: then?, wait: wait? })
}

/// A ladder, if it is given; `review` ends it, written or not.
pub(super) fn rungs(table: &Table<'_>, key: &str) -> Result<Option<Vec<Rung>>, Reported> {
    table.read(key, |item| {
        let DeValue::Array(names) = item.value else {
            return Err(format!("must be a list like [\"resend\", \"review\"], found {}", type_of(item.value)));
        };
        let mut ladder = Vec::new();
        for name in names.iter() {
            let Some(name) = name.get_ref().as_str() else {
                return Err(format!("must hold strings, found {}", type_of(name.get_ref())));
            };
            let known = RUNGS.into_iter().find(|rung| rung.as_str() == name);
            let rung = known.ok_or_else(|| {
                let near = nearest(name, RUNGS.iter().map(|rung| rung.as_str()));
                let hint = near.map(|name| format!("; did you mean \"{name}\"?")).unwrap_or_default();
                format!("has {name:?}, which is none of \"resend\", \"lookup\", \"cancel\", \"review\"{hint}")
            })?;
            if ladder.contains(&rung) {
                return Err(format!("has \"{name}\" twice"));
            }
            if ladder.contains(&Rung::Review) {
                return Err(format!("has \"{name}\" behind \"review\", where it is never reached"));
            }
            ladder.push(rung);
        }
        if !ladder.contains(&Rung::Review) {
            ladder.push(Rung::Review);
        }
        Ok(ladder)
    })
}
