//! A contract in canonical form: what `outboxd contracts NAME` prints, to be pasted into a file.

use std::fmt::{self, Write as _};

use super::{duration, inline, name_of, request_parts, text, texts};
use crate::config::contract::Promise;
use crate::config::key::{ENCODINGS, MODES, Notes};
use crate::config::pace::show_pace;
use crate::config::place::{show_place, show_source};
use crate::config::show;
use crate::config::table::quoted;
use crate::core::contract::{
    Absence, Asking, By, Class, Compare, Contract, JsonIs, Key, KeyForm, Question, Rule, Rung, StatusSet, TextIs,
    WaitFormat, When, Window,
};
use crate::core::credentials::Scheme;

impl Promise {
    /// The contract as TOML, which reads back as itself.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        // Writing into a string cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let contract = &self.contract;
        let title = format!("contract.{}", quoted(&contract.name));
        writeln!(out, "[{title}]\nschema = 1")?;
        if let Some(what) = &self.title {
            writeln!(out, "title = {}", text(what))?;
        }
        writeln!(out, "reconcile = {}", ladder(&contract.reconcile))?;
        if !self.sources.is_empty() {
            writeln!(out, "sources = [")?;
            for source in &self.sources {
                let mut parts = vec![("url", text(&source.url)), ("trust", text(source.trust.as_str()))];
                parts.extend(source.seen.as_ref().map(|seen| ("seen", text(seen))));
                writeln!(out, "  {},", inline(parts))?;
            }
            writeln!(out, "]")?;
        }
        if !contract.compare.is_empty() {
            writeln!(out, "compare = {}", compare(&contract.compare))?;
        }
        self.write_marks(out, "")?;
        if let Some(key) = &contract.key {
            self.write_key(out, &title, key)?;
        }
        self.write_places(out, &title, contract)?;
        if let Some(scheme) = &contract.sign {
            let (name, headers) = (name_of(&Scheme::PROMISED, scheme), scheme.headers());
            writeln!(out, "\n[{title}.sign]\nscheme = {}\nper_attempt = {}", text(name), texts(&headers[1..]))?;
            self.write_marks(out, "sign")?;
        }
        for (at, rule) in contract.rules.iter().enumerate() {
            write_rule(out, &title, rule)?;
            if let Some(note) = self.rule_notes.get(at).and_then(Option::as_ref) {
                writeln!(out, "note = {}", text(note))?;
            }
            self.write_marks(out, &format!("rule.{}", at + 1))?;
        }
        self.write_questions(out, &title, contract)
    }

    /// How sure single values of a table are.
    fn write_marks(&self, out: &mut String, table: &str) -> fmt::Result {
        let mut marks = self.marks.iter().filter(|mark| mark.table == table);
        marks.try_for_each(|mark| writeln!(out, "{}_trust = {}", mark.field, text(mark.trust.as_str())))
    }

    fn write_key(&self, out: &mut String, title: &str, key: &Key) -> fmt::Result {
        writeln!(out, "\n[{title}.key]\nmode = {}", text(name_of(&MODES, &Some(key.mode))))?;
        if self.needs_place {
            writeln!(out, "place = {}", text(&show_place(&key.place)))?;
        }
        writeln!(out, "form = {}", text(name_of(&KeyForm::ALL, &key.form)))?;
        writeln!(out, "encode = {}", text(name_of(&ENCODINGS, &key.encode)))?;
        let Notes { max_bytes, charset, pins, other_body, replays, overwrites } = &self.key_notes;
        if let Some(max) = max_bytes {
            writeln!(out, "max_bytes = {max}")?;
        }
        if let Some(charset) = charset {
            writeln!(out, "charset = {}", text(charset))?;
        }
        if !key.also.is_empty() {
            let pairs = key.also.iter().map(|(place, value)| (quoted(&show_place(place)), value_text(value)));
            writeln!(out, "also = {}", inline(pairs))?;
        }
        match key.window {
            Some(Window::For(window)) => duration(out, "window", window)?,
            Some(Window::Forever) => writeln!(out, "window = \"forever\"")?,
            None => {}
        }
        duration(out, "margin", key.margin)?;
        duration(out, "min_gap", key.min_gap)?;
        if let Some(within) = self.resend_within {
            duration(out, "resend_within", within)?;
        }
        for (name, when) in [("replayed", &key.replayed), ("honoured", &key.honoured)] {
            if let Some(when) = when {
                writeln!(out, "{name} = {}", matcher(when))?;
            }
        }
        if !pins.is_empty() {
            writeln!(out, "pins = {}", texts(pins.iter().copied()))?;
        }
        if let Some(other_body) = other_body {
            writeln!(out, "other_body = {}", text(other_body))?;
        }
        if let Some(replays) = replays {
            writeln!(out, "replays = {}", text(replays))?;
        }
        if let Some(overwrites) = overwrites {
            writeln!(out, "overwrites = {overwrites}")?;
        }
        self.write_marks(out, "key")
    }

    fn write_places(&self, out: &mut String, title: &str, contract: &Contract) -> fmt::Result {
        if let Some(reference) = &contract.reference {
            writeln!(out, "\n[{title}.ref]\nplace = {}", text(&show_place(&reference.place)))?;
            if let Some(max) = self.ref_max_bytes {
                writeln!(out, "max_bytes = {max}")?;
            }
            self.write_marks(out, "ref")?;
        }
        let receipt = &contract.receipt;
        if !receipt.id.is_empty() || receipt.request_id.is_some() {
            writeln!(out, "\n[{title}.receipt]")?;
        }
        match receipt.id.as_slice() {
            [] => {}
            [one] => writeln!(out, "id = {}", text(&show_source(one)))?,
            several => writeln!(out, "id = {}", texts(several.iter().map(show_source)))?,
        }
        if let Some(request_id) = &receipt.request_id {
            writeln!(out, "request_id = {}", text(&show_source(request_id)))?;
        }
        self.write_marks(out, "receipt")?;
        let pace = show_pace(&contract.pace);
        if !contract.retry_after.is_empty() || !pace.is_empty() {
            writeln!(out, "\n[{title}.pace]")?;
            let wait = |wait: &crate::core::contract::WaitAt| {
                format!("{};{}", show_source(&wait.at), name_of(&WaitFormat::ALL, &wait.format))
            };
            let waits = texts(contract.retry_after.iter().map(wait));
            if !contract.retry_after.is_empty() {
                writeln!(out, "retry_after = {waits}")?;
            }
            for line in pace {
                writeln!(out, "{line}")?;
            }
            self.write_marks(out, "pace")?;
        }
        Ok(())
    }

    fn write_questions(&self, out: &mut String, title: &str, contract: &Contract) -> fmt::Result {
        if let Some(lookup) = &contract.lookup {
            writeln!(out, "\n[{title}.lookup]\nby = {}", text(name_of(&By::ALL, &lookup.by)))?;
            write_question(out, &lookup.question)?;
            writeln!(out, "found = {}", matcher(&lookup.found))?;
            if let Some(absent) = &lookup.absent {
                writeln!(out, "absent = {}", matcher(absent))?;
            }
            if let Some(receipt) = &lookup.receipt {
                writeln!(out, "receipt = {}", text(&show_source(receipt)))?;
            }
            if !lookup.compare.is_empty() {
                writeln!(out, "compare = {}", compare(&lookup.compare))?;
            }
            write_asking(out, &lookup.asking)?;
            self.write_marks(out, "lookup")?;
        }
        if let Some(cancel) = &contract.cancel {
            writeln!(out, "\n[{title}.cancel]")?;
            write_question(out, &cancel.question)?;
            writeln!(out, "done = {}", matcher(&cancel.done))?;
            write_asking(out, &cancel.asking)?;
            self.write_marks(out, "cancel")?;
        }
        if let Some(hint) = &contract.hint {
            writeln!(out, "\n[{title}.hint]")?;
            write_question(out, hint)?;
            self.write_marks(out, "hint")?;
        }
        Ok(())
    }
}

fn write_question(out: &mut String, question: &Question) -> fmt::Result {
    let mut parts = request_parts(&question.request);
    parts.extend(question.body.as_ref().map(|body| ("body", value_text(body))));
    writeln!(out, "request = {}", inline(parts))
}

fn write_asking(out: &mut String, asking: &Asking) -> fmt::Result {
    let Asking { first_after, repeat, absence } = asking;
    duration(out, "first_after", *first_after)?;
    writeln!(out, "repeat = {}", texts(repeat.iter().map(|gap| show(*gap))))?;
    let absence = match absence {
        Absence::Never => "never".to_owned(),
        Absence::After(delay) => format!("after:{}", show(*delay)),
    };
    writeln!(out, "absence = {}", text(&absence))
}

fn write_rule(out: &mut String, title: &str, rule: &Rule) -> fmt::Result {
    writeln!(out, "\n[[{title}.rule]]\nwhen = {}", matcher(&rule.when))?;
    writeln!(out, "class = {}", text(name_of(&Class::ALL, &rule.class)))?;
    if let Some(then) = &rule.then {
        writeln!(out, "then = {}", ladder(then))?;
    }
    rule.wait.map_or(Ok(()), |wait| duration(out, "wait", wait))
}

fn matcher(when: &When) -> String {
    let mut parts = Vec::new();
    if let Some(sets) = &when.status {
        let set = |set: &StatusSet| match set {
            StatusSet::Exact(status) => status.to_string(),
            StatusSet::Class(class) => text(&format!("{class}xx")),
        };
        let status = match sets.as_slice() {
            [one] => set(one),
            several => format!("[{}]", several.iter().map(set).collect::<Vec<_>>().join(", ")),
        };
        parts.push(("status", status));
    }
    if !when.headers.is_empty() {
        let header = |(name, is): &(String, TextIs)| (quoted(name), text(is.pattern()));
        parts.push(("header", inline(when.headers.iter().map(header))));
    }
    if !when.json.is_empty() {
        let json = |(pointer, is): &(String, JsonIs)| {
            let is = match is {
                JsonIs::Text(is) => text(is.pattern()),
                JsonIs::Present => text("*"),
                JsonIs::Exactly(value @ (serde_json::Value::Array(_) | serde_json::Value::Object(_))) => {
                    text(&value.to_string())
                }
                JsonIs::Exactly(value) => value.to_string(),
            };
            (quoted(pointer), is)
        };
        parts.push(("json", inline(when.json.iter().map(json))));
    }
    inline(parts)
}

fn compare(compare: &[Compare]) -> String {
    inline(compare.iter().map(|compare| (quoted(&compare.answer), text(&show_place(&compare.sent)))))
}

fn ladder(rungs: &[Rung]) -> String {
    texts(rungs.iter().map(|rung| rung.as_str()))
}

/// A JSON value as TOML writes it.
fn value_text(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::String(string) => text(string),
        Value::Array(items) => format!("[{}]", items.iter().map(value_text).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => inline(members.iter().map(|(name, value)| (quoted(name), value_text(value)))),
        // None comes from a file: TOML has no word for it.
        Value::Null => text(""),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}
