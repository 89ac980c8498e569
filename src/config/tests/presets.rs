//! The contracts that are part of the program.

use super::*;
use crate::core::contract::{Absence, Encode, KeyMode, Place, Rung};

/// An operation under a built-in contract, in the shape that the contract asks for.
fn operation(promise: &Promise, more: &str) -> String {
    let contract = &promise.contract;
    let path = match contract.key.as_ref().map(|key| &key.place) {
        Some(Place::Path(name)) if promise.needs_place => format!("/x/{{{name}}}"),
        Some(_) | None => "/x".to_owned(),
    };
    let effect = if contract.key.is_some() { "keyed" } else { "unreconcilable" };
    let auth = match contract.sign {
        Some(_) => "auth = { sign = { scheme = \"standard-webhooks\", secrets = [{ env = \"WEBHOOKS\" }] } }\n",
        None => "",
    };
    format!(
        "{DATABASE}[destination.d]\nbase_url = \"http://d\"\n{auth}[operation.o]\ndestination = \"d\"\n\
         request = {{ method = \"POST\", path = {path:?} }}\ncontract = {:?}\neffect = {effect:?}\nmeaning = \"m\"\n\
         owner = \"o\"\n{more}",
        contract.name
    )
}

/// Contracts that leave out how long a key is remembered, because nobody publishes it.
const WITHOUT_WINDOW: [&str; 3] = ["gocardless.payments.create", "hubspot.single_send", "http.idempotency-key"];

/// Contracts where something that decides is our own guess.
const UNVERIFIED: [&str; 1] = ["square.payments.create"];

#[test]
fn every_file_of_a_contract_is_built_in_under_its_name() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/contracts");
    let mut files: Vec<String> = std::fs::read_dir(here)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    files.sort();
    assert_eq!(builtin::FILES.map(|(name, _)| name).to_vec(), files);
    let config = accepted(DATABASE);
    let names: Vec<String> = config.contracts.keys().map(|name| format!("{name}.toml")).collect();
    assert_eq!(names, files);
}

#[test]
fn every_built_in_contract_says_what_it_is_of_and_where_that_is_written() {
    for (file, text) in builtin::FILES {
        assert!(text.starts_with("# "), "{file}: begin with what one must know");
        assert!(text.contains("\nschema    = 1\n"), "{file}");
    }
    let config = accepted(DATABASE);
    for (name, promise) in &config.contracts {
        assert!(promise.built_in && promise.title.is_some() && !promise.sources.is_empty(), "{name}");
        assert_eq!(!promise.unverified().is_empty(), UNVERIFIED.contains(&name.as_str()), "{name}");
        let relayed = |trust: Trust| trust == Trust::Relayed || trust == Trust::Memory;
        assert!(promise.sources.iter().any(|s| !relayed(s.trust)) || promise.contract.key.is_none(), "{name}");
    }
}

#[test]
fn r18_a_built_in_contract_resends_only_where_the_memory_of_the_key_is_published() {
    for (name, promise) in &accepted(DATABASE).contracts {
        let Some(key) = promise.contract.key.as_ref().filter(|key| key.mode.needs_window()) else { continue };
        let resends = promise.contract.reconcile.contains(&Rung::Resend);
        assert_eq!(resends && key.window.is_none(), WITHOUT_WINDOW.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn r20_every_built_in_contract_can_be_used_by_an_operation_or_says_what_is_missing() {
    for (name, promise) in &accepted(DATABASE).contracts {
        let complaints = refused(&operation(promise, "")).join("\n");
        if WITHOUT_WINDOW.contains(&name.as_str()) {
            assert!(complaints.contains("`resend` needs to know how long"), "{name}: {complaints}");
            let own = format!("[contract.own]\nextends = {name:?}\nkey.window = \"1d\"");
            assert_eq!(
                refused(&operation(promise, &own).replace(&format!("contract = {name:?}"), "contract = \"own\"")),
                [""; 0]
            );
        } else if UNVERIFIED.contains(&name.as_str()) {
            assert!(complaints.contains("what nobody has verified: cancel.absence;"), "{name}: {complaints}");
            assert_eq!(refused(&operation(promise, "allow_unverified = true")), [""; 0], "{name}");
        } else {
            assert_eq!(complaints, "", "{name}");
        }
    }
}

#[test]
fn every_built_in_contract_can_be_pasted_as_it_is_printed() {
    for (name, promise) in &accepted(DATABASE).contracts {
        let described = promise.describe();
        let pasted = &accepted(&format!("{DATABASE}{described}")).contracts[name];
        assert_eq!(pasted.describe(), described, "{name}");
        assert!(!pasted.built_in && pasted.contract == promise.contract, "{name}");
    }
}

#[test]
fn what_built_in_contracts_promise_is_what_their_pages_say() {
    let contracts = accepted(DATABASE).contracts;
    let key = |name: &str| contracts[name].contract.key.as_ref().expect("a key");
    assert_eq!((key("http.idempotency-key").window, key("http.idempotency-key").encode), (None, Encode::SfString));
    assert!(contracts["http.post"].contract.key.is_none());
    assert_eq!(key("discord.message.create").also, [(Place::Json("/enforce_nonce".into()), true.into())]);
    assert_eq!(key("salesforce.sobject.upsert").mode, KeyMode::Natural);
    assert_eq!(key("linear.issue.create").place, Place::Json("/variables/input/id".into()));
    let stripe = &contracts["stripe.v1.payment_intents.create"].contract;
    assert_eq!(stripe.lookup.as_ref().map(|lookup| lookup.asking.absence), Some(Absence::Never));
    assert!(key("zendesk.tickets.create").honoured.is_some() && key("adyen.checkout.payments").honoured.is_some());
}
