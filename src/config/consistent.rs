//! Whether the parts of a contract agree with each other. Each may be right by itself.

use super::place::show_place;
use super::problem::Reported;
use super::question;
use super::table::Table;
use crate::core::contract::{Absence, By, Contract, Place, Rung};

/// Reports every contradiction.
pub(super) fn check(table: &Table<'_>, contract: &Contract, needs_place: bool) -> Result<(), Reported> {
    let mut refused = ladders(table, contract);
    let mut refuse = |section: &str, key: &str, complaint: String| {
        let sub = table.sub(section).ok().flatten();
        refused = Err(sub.as_ref().unwrap_or(table).wrong(key, complaint));
    };
    if let Some(lookup) = &contract.lookup {
        match lookup.by {
            By::Key if contract.key.is_none() => {
                refuse(
                    "lookup",
                    "by",
                    "is \"key\", but the contract has no key; add one, or ask by \"ref\"".to_owned(),
                );
            }
            By::Reference if contract.reference.is_none() => {
                let remedy = "say in `ref` where our reference is planted, or ask by \"key\"";
                refuse("lookup", "by", format!("is \"ref\", but the contract has none; {remedy}"));
            }
            By::Key | By::Reference => {}
        }
        for complaint in question::complaints(&lookup.question, contract, false) {
            refuse("lookup", "request", complaint);
        }
        if lookup.asking.absence != Absence::Never && question::asks_by(&lookup.question) == (false, false) {
            let remedy = "put `{key}` or `{ref}` into its path, query or body (a header may go unread), or write \
                          `absence = \"never\"`";
            refuse(
                "lookup",
                "request",
                format!("names nothing of the action, yet its \"not there\" is believed; {remedy}"),
            );
        }
    }
    if let Some(cancel) = &contract.cancel {
        for complaint in question::complaints(&cancel.question, contract, false) {
            refuse("cancel", "request", complaint);
        }
        if contract.key.is_none() {
            refuse("", "cancel", "needs a key, and the contract has none; add [key] or take `cancel` out".to_owned());
        } else if !question::asks_by(&cancel.question).0 {
            let complaint =
                "must hold `{key}` in its path, query or body: it is by its key that an action is cancelled";
            refuse("cancel", "request", complaint.to_owned());
        }
    }
    if let Some(hint) = &contract.hint {
        for complaint in question::complaints(hint, contract, true) {
            refuse("hint", "request", complaint);
        }
    }
    for (section, key, complaint) in places(contract, needs_place) {
        refuse(section, key, complaint);
    }
    refused
}

/// Every ladder must be possible as far down as it goes.
fn ladders(table: &Table<'_>, contract: &Contract) -> Result<(), Reported> {
    let mut refused = Ok(());
    for complaint in ladder(&contract.reconcile, contract) {
        refused = Err(table.wrong("reconcile", complaint));
    }
    for (rule, table) in contract.rules.iter().zip(table.list("rule")?) {
        for complaint in rule.then.iter().flat_map(|then| ladder(then, contract)) {
            refused = Err(table.wrong("then", complaint));
        }
        for complaint in rule.then.iter().flat_map(|then| undone(then, &contract.reconcile)) {
            refused = Err(table.wrong("then", complaint));
        }
    }
    refused
}

fn ladder(rungs: &[Rung], contract: &Contract) -> Vec<String> {
    let mut complaints = Vec::new();
    let behind = |rung| rungs.iter().position(|known| *known == rung).map_or(&[][..], |at| &rungs[at + 1..]);
    if rungs.contains(&Rung::Lookup) && contract.lookup.is_none() {
        complaints.push("has \"lookup\", but the contract does not say how to ask; add `lookup`".to_owned());
    }
    if rungs.contains(&Rung::Cancel) && contract.cancel.is_none() {
        complaints.push("has \"cancel\", but the contract does not say how; add `cancel`".to_owned());
    }
    if contract.lookup.as_ref().is_some_and(|lookup| lookup.asking.absence == Absence::Never) {
        let unreachable = behind(Rung::Lookup).iter().filter(|rung| matches!(rung, Rung::Resend | Rung::Cancel));
        complaints.extend(unreachable.map(|rung| {
            let rung = rung.as_str();
            format!(
                "has \"{rung}\" behind \"lookup\", where it would never be reached: the lookup's `absence` is \
                 \"never\", so it is asked again and again; put \"{rung}\" before it, or say after how long \"not \
                 there\" is proof"
            )
        }));
    }
    let honoured = contract.key.as_ref().is_some_and(|key| key.honoured.is_some());
    for rung in [Rung::Lookup, Rung::Cancel] {
        if honoured && behind(rung).contains(&Rung::Resend) {
            let rung = rung.as_str();
            complaints.push(format!(
                "has \"resend\" behind \"{rung}\", and the key has `honoured`: by then nobody knows any more whether \
                 the destination took the key; put \"resend\" first"
            ));
        }
    }
    complaints
}

/// What the ladder of a rule leaves out must not come back behind it: where asking has settled nothing, `reconcile` goes
/// on behind that rung, for the rule is not remembered.
fn undone(then: &[Rung], reconcile: &[Rung]) -> Vec<String> {
    let resends = |rungs: &[Rung]| rungs.contains(&Rung::Resend);
    let comes_behind =
        |rung: Rung| reconcile.iter().position(|r| *r == rung).is_some_and(|at| resends(&reconcile[at..]));
    let asks = [Rung::Lookup, Rung::Cancel].into_iter().filter(|rung| !resends(then) && then.contains(rung));
    asks.filter(|rung| comes_behind(*rung))
        .map(|rung| {
            let rung = rung.as_str();
            format!(
                "has \"{rung}\" without \"resend\", and `reconcile` has \"resend\" behind \"{rung}\": once asking has \
                 settled nothing it goes on there and sends again what this rule forbids; in `reconcile` put \"resend\" \
                 before \"{rung}\" or take it out, or allow it here"
            )
        })
        .collect()
}

/// What is put into a request must not meet in one place, and a body is either JSON or a form.
fn places(contract: &Contract, needs_place: bool) -> Vec<(&'static str, &'static str, String)> {
    let key = contract.key.as_ref();
    let mut written: Vec<(&str, &str, &Place)> = Vec::new();
    written.extend(key.filter(|_| needs_place).map(|key| ("key", "place", &key.place)));
    written.extend(contract.reference.as_ref().map(|reference| ("ref", "place", &reference.place)));
    written.extend(key.into_iter().flat_map(|key| &key.also).map(|(place, _)| ("key", "also", place)));
    let mut complaints = Vec::new();
    for (at, (section, name, place)) in written.iter().enumerate() {
        let others = written.iter().take(at);
        if let Some((other, other_name, _)) = others.into_iter().find(|(_, _, other)| meet(place, other)) {
            let shown = show_place(place);
            complaints.push((*section, *name, format!("has `{shown}`, where `{other_name}` of `{other}` stands too")));
        }
    }
    let compared = contract.compare.iter().map(|compare| ("", "compare", &compare.sent));
    let looked_up = contract.lookup.iter().flat_map(|lookup| &lookup.compare);
    let looked_up = looked_up.map(|compare| ("lookup", "compare", &compare.sent));
    let mut in_body: Vec<_> = written.iter().copied().chain(compared).chain(looked_up).collect();
    in_body.retain(|(_, _, place)| matches!(place, Place::Json(_) | Place::Form(_)));
    if let Some((_, _, first)) = in_body.first() {
        let is_json = |place: &Place| matches!(place, Place::Json(_));
        let others = in_body.iter().filter(|(_, _, place)| is_json(place) != is_json(first));
        complaints.extend(others.map(|(section, name, place)| {
            let (place, first) = (show_place(place), show_place(first));
            (*section, *name, format!("has `{place}`, but the body holds `{first}`: it is either JSON or a form"))
        }));
    }
    complaints
}

/// Whether one place is the other, or lies in it.
fn meet(one: &Place, other: &Place) -> bool {
    if let (Place::Json(one), Place::Json(other)) = (one, other) {
        return one == other || one.starts_with(&format!("{other}/")) || other.starts_with(&format!("{one}/"));
    }
    one == other
}
