//! Every built-in contract against an API that behaves as its page says: what the real destination learns from each
//! kind of answer, and what may be tried after it. The APIs are a few lines each; nothing here has met a real one.

mod keyless;
mod mail;
mod payments;
mod transfers;
mod webhooks;
mod work;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use outboxd::clock::Uptime;
use outboxd::config::{Config, Secrets, show};
use outboxd::core::action::{ActionId, AttemptId, Fence, Intent};
use outboxd::core::contract::{Contract, Rung};
use outboxd::core::evidence::{Evidence, Finding};
use outboxd::core::target::Operation;
use outboxd::destination::{Claim, Destination, Limits};
use outboxd::proving::fake::{Behaviour, Fake, Reply, Seen};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use uuid::Uuid;

/// One built-in contract, an API as its page describes it, and what is to be learnt from it.
struct Preset {
    contract: &'static str,
    /// What the contract leaves to the operation's own.
    own: &'static str,
    /// Further lines of the destination.
    destination: &'static str,
    /// Further lines of the operation.
    operation: &'static str,
    method: &'static str,
    path: &'static str,
    params: &'static str,
    content_type: &'static str,
    body: &'static str,
    api: fn(&mut Api, &Seen) -> Reply,
    script: &'static [(Do, &'static str, &'static str)],
    /// How often something happened at the API in all of the script.
    effects: usize,
}

/// A `POST` of JSON.
const JSON: Preset = Preset {
    contract: "",
    own: "",
    destination: "",
    operation: "",
    method: "POST",
    path: "/x",
    params: "{}",
    content_type: "application/json",
    body: "{\"text\":\"hello\"}",
    api: |_, _| Reply::new(404),
    script: &[],
    effects: 0,
};

/// A step: what is done, in which mood the API is, and what is learnt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Do {
    /// A new action is sent.
    New,
    /// The same action is sent again.
    Again,
    /// The same action again, but with another body: what never happens, and what its API would say.
    Other,
    /// The same action is looked up.
    Look,
    /// The same action is cancelled.
    Cancel,
}

/// The memory of an API, and what it is to do next.
#[derive(Default)]
struct Api {
    /// Empty = it does what it is asked. `lost` is the same with the answer lost; all else means what the API's own
    /// lines make of it.
    mood: &'static str,
    kept: HashMap<String, (Bytes, Reply)>,
    /// What exists: the reference that we gave it, and its id.
    things: Vec<(String, String)>,
    effects: usize,
    /// Whether it is being sent to, not asked.
    sending: bool,
    /// Which of the contract's rules have decided.
    spoke: BTreeSet<usize>,
}

/// What an API remembers of a key.
enum Known {
    Nothing,
    Same(Reply),
    OtherBody(Reply),
}

impl Api {
    fn known(&self, key: &str, ask: &Seen) -> Known {
        match self.kept.get(key) {
            None => Known::Nothing,
            Some((body, reply)) if *body == ask.body => Known::Same(reply.clone()),
            Some((_, reply)) => Known::OtherBody(reply.clone()),
        }
    }

    /// Keeps an answer under a key.
    fn keep(&mut self, key: &str, ask: &Seen, reply: Reply) -> Reply {
        self.kept.insert(key.to_owned(), (ask.body.clone(), reply.clone()));
        reply
    }

    /// Something happens; its id.
    fn happens(&mut self) -> String {
        self.effects += 1;
        format!("e{}", self.effects)
    }

    /// The same to something that can be found by a reference of ours.
    fn happens_as(&mut self, reference: &str) -> String {
        let id = self.happens();
        self.things.push((reference.to_owned(), id.clone()));
        id
    }

    /// The id of what has that reference.
    fn thing(&self, reference: &str) -> Option<&str> {
        self.things.iter().find(|(known, _)| known == reference).map(|(_, id)| id.as_str())
    }

    /// It acts, says that it broke down, and keeps nothing: the same key would be taken as new.
    fn acts_and_forgets(&mut self, status: u16) -> Reply {
        self.happens();
        Reply::new(status)
    }

    /// The plainest memory: an answer of success is kept and given again, whatever the body.
    fn once(&mut self, key: &str, ask: &Seen, answer: impl Fn(String) -> Reply) -> Reply {
        match self.known(key, ask) {
            Known::Same(reply) | Known::OtherBody(reply) => reply,
            Known::Nothing => {
                let reply = answer(self.happens());
                self.keep(key, ask, reply)
            }
        }
    }
}

fn json(status: u16, body: &Value) -> Reply {
    Reply::json(status, body.to_string())
}

/// The value of a form's field, or of a parameter of the query.
fn field(pairs: &str, name: &str) -> String {
    let plain = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let mut named = pairs.split('&').filter_map(|pair| pair.split_once('=')).filter(|(known, _)| plain(known) == name);
    named.next().map(|(_, value)| plain(value)).unwrap_or_else(|| panic!("no {name} in {pairs}"))
}

/// What stands at a pointer of a JSON body, as text.
fn at(ask: &Seen, pointer: &str) -> String {
    let body: Value = serde_json::from_slice(&ask.body).unwrap_or_else(|_| panic!("{} is no JSON", ask.text()));
    match body.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => panic!("nothing at {pointer} in {}", ask.text()),
    }
}

fn header(ask: &Seen, name: &str) -> String {
    ask.header(name).unwrap_or_else(|| panic!("{name} is missing")).to_owned()
}

/// What was learnt, in a line: evidence, receipt, the wait that the answer asks for, and the ladder where one is
/// climbed.
fn told(finding: &Finding, contract: &Contract) -> String {
    let mut line = finding.evidence.as_str().to_owned();
    if let Some(receipt) = &finding.receipt {
        line += &format!(" {receipt}");
    }
    if let Some(wait) = finding.wait.or(finding.retry_after) {
        line += &format!(" after {}", show(wait));
    }
    if matches!(finding.evidence, Evidence::NoAnswer | Evidence::UnknownAnswer | Evidence::InFlight) {
        let ladder = finding.then.as_ref().unwrap_or(&contract.reconcile);
        let ladder: Vec<_> = ladder.iter().map(|rung| rung.as_str()).collect();
        line += &format!(" → {}", ladder.join(" "));
    }
    line
}

/// Which rule of a contract decides about an answer.
fn rule_for(contract: &Contract, reply: &Reply) -> Option<usize> {
    let body: Option<Value> = serde_json::from_slice(&reply.body).ok();
    let header = |wanted: &str| -> Vec<&str> {
        let named = reply.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        named.map(|(_, value)| value.as_str()).collect()
    };
    contract
        .rules
        .iter()
        .position(|rule| rule.when.head_matches(reply.status, header) && rule.when.body_matches(body.as_ref()))
}

/// The one secret that there is.
fn secret(name: &str) -> Option<String> {
    (name == "SIGNING_KEY").then(|| webhooks::SECRET.to_owned())
}

impl Preset {
    fn configured(&self, base_url: &str) -> (Destination, Operation) {
        let Self { contract, own, destination, operation, method, path, .. } = self;
        let (named, extended) = match own.is_empty() {
            true => (*contract, String::new()),
            false => ("own", format!("[contract.own]\nextends = {contract:?}\n{own}\n")),
        };
        let text = format!(
            "[database]\nurl = \"postgres://nobody@localhost/none\"\n[destination.d]\nbase_url = {base_url:?}\n\
             account = \"AC1\"\n{destination}\n[operation.o]\ndestination = \"d\"\nrequest = {{ method = {method:?}, path = {path:?} }}\n\
             contract = {named:?}\neffect = \"EFFECT\"\nmeaning = \"m\"\nowner = \"w\"\n{operation}\n{extended}"
        );
        let parse =
            |effect: &str| Config::parse(&text.replace("EFFECT", effect), "outboxd.toml", Secrets::Resolve, &secret);
        // Without a key nothing is `keyed`.
        let mut config = parse("keyed").or_else(|_| parse("unreconcilable")).unwrap_or_else(|e| panic!("{e}"));
        let target = config.targets.remove("d").expect("a destination");
        (Destination::new(target).expect("no TLS settings"), config.operations.remove("o").expect("an operation"))
    }

    fn intent(&self, action: u128, body: &str) -> Intent {
        Intent {
            id: ActionId(Uuid::from_u128(action << 64 | 7)),
            tenant: String::new(),
            operation: "o".into(),
            traceparent: None,
            params: Some(self.params.into()),
            headers: None,
            content_type: Some(self.content_type.into()),
            body: Bytes::copy_from_slice(body.as_bytes()),
        }
    }

    async fn play(&self) {
        let name = self.contract;
        let fake = Fake::start().await.expect("a port");
        let (destination, operation) = self.configured(&fake.base_url());
        let contract = operation.terms.contract.clone();
        let api = Arc::new(Mutex::new(Api::default()));
        let (serve, state, rules) = (self.api, Arc::clone(&api), contract.clone());
        fake.behave(move |seen, _| {
            let mut api = state.lock().expect("an API");
            let reply = serve(&mut api, seen);
            if api.sending && api.mood != "lost" {
                api.spoke.extend(rule_for(&rules, &reply));
            }
            match api.mood {
                "lost" => Behaviour::reply(reply).closing(),
                _ => Behaviour::reply(reply),
            }
        });
        let mut action = 0;
        for (index, (what, mood, expected)) in self.script.iter().enumerate() {
            {
                let mut api = api.lock().expect("an API");
                api.mood = mood;
                api.sending = matches!(what, Do::New | Do::Again | Do::Other);
            }
            action += u128::from(*what == Do::New);
            let claim = Claim { attempt: AttemptId(Uuid::from_u128(index as u128)), fence: Fence(1) };
            let end = Uptime::now().plus(Duration::from_secs(20));
            let limits = Limits { deadline: end, leave_before: end };
            let other = self.body.replace("hello", "goodbye");
            let intent = self.intent(action, if *what == Do::Other { &other } else { self.body });
            let finding = match what {
                Do::New | Do::Again | Do::Other => destination.send(&operation, &intent, &claim, limits).await,
                Do::Look => destination.look_up(&operation, &intent, &claim, limits).await,
                Do::Cancel => destination.cancel(&operation, &intent, &claim, limits).await,
            };
            let learnt = told(&finding, &contract);
            assert_eq!(learnt, *expected, "{name}, step {}: {what:?} {mood:?}: {finding:?}", index + 1);
        }
        let api = api.lock().expect("an API");
        assert_eq!(api.effects, self.effects, "{name}: how often it happened");
        let silent: Vec<_> = (0..contract.rules.len()).filter(|rule| !api.spoke.contains(rule)).collect();
        assert!(silent.is_empty(), "{name}: no answer is decided by the rules {silent:?}");
    }
}

fn all() -> impl Iterator<Item = &'static Preset> {
    [payments::PRESETS, transfers::PRESETS, mail::PRESETS, work::PRESETS, keyless::PRESETS, webhooks::PRESETS]
        .into_iter()
        .flatten()
}

#[test]
fn every_built_in_contract_meets_an_api_that_behaves_as_its_page_says() {
    let config =
        Config::parse("[database]\nurl = \"postgres://nobody@localhost/none\"\n", "x", Secrets::Resolve, &|_| None);
    let built_in: Vec<String> = config.unwrap_or_else(|e| panic!("{e}")).contracts.into_keys().collect();
    let mut met: Vec<&str> = all().map(|preset| preset.contract).collect();
    met.sort_unstable();
    assert_eq!(met, built_in);
}

/// Contracts under which the same request is sent again after a 500, and why that cannot make two of it. All others
/// say after a 500: not again.
const REPEATED_AFTER_A_500: [(&str, &str); 17] = [
    ("aws.sqs.fifo.send", "what is remembered is the message"),
    ("brevo.smtp.send", "a request is processed once per key"),
    ("discord.message.create", "what is remembered is the message"),
    ("gocardless.payments.create", "what is remembered is the payment"),
    ("http.idempotency-key", "by the draft errors are kept too"),
    ("http.put", "the same state again"),
    ("hubspot.single_send", "what is remembered is the e-mail"),
    ("increase.ach_transfers.create", "what is remembered is the object"),
    ("linear.issue.create", "the id is the issue's"),
    ("paypal.orders.create", "a repeat after a 5xx is what PayPal asks for"),
    ("paypal.payments.v2.post", "a repeat after a 5xx is what PayPal asks for"),
    ("paypal.payouts.create", "a repeat after a 5xx is what PayPal asks for"),
    ("plaid.transfer.create", "what is remembered is the transfer"),
    ("resend.emails.send", "what is remembered is the e-mail"),
    ("salesforce.sobject.upsert", "the id is the record's"),
    ("stripe.v2.post", "what was begun is taken up again"),
    ("whop.post", "errors are kept too"),
];

#[test]
fn r18_where_only_successes_are_remembered_nothing_is_sent_again_after_a_500() {
    let config = Config::parse("[database]\nurl = \"postgres://n@localhost/n\"\n", "x", Secrets::Resolve, &|_| None);
    let contracts = config.unwrap_or_else(|e| panic!("{e}")).contracts;
    let resends = |contract: &Contract| {
        let rule = rule_for(contract, &Reply::new(500)).map(|at| &contract.rules[at]);
        rule.and_then(|rule| rule.then.as_ref()).unwrap_or(&contract.reconcile).contains(&Rung::Resend)
    };
    let again: Vec<_> = contracts.values().map(|promise| &promise.contract).filter(|c| resends(c)).collect();
    let again: Vec<_> = again.iter().map(|contract| contract.name.as_str()).collect();
    assert_eq!(again, REPEATED_AFTER_A_500.map(|(name, _)| name));
}

async fn play(presets: &[Preset]) {
    for preset in presets {
        preset.play().await;
    }
}

#[tokio::test]
async fn r15_r17_r19_contracts_of_payments_learn_what_their_apis_say() {
    play(payments::PRESETS).await;
    play(transfers::PRESETS).await;
}

#[tokio::test]
async fn r15_r17_contracts_of_mail_learn_what_their_apis_say() {
    play(mail::PRESETS).await;
}

#[tokio::test]
async fn r15_r19_contracts_of_other_work_learn_what_their_apis_say() {
    play(work::PRESETS).await;
}

#[tokio::test]
async fn b23_r15_the_contract_of_webhooks_learns_what_a_receiver_says_that_looks_at_signatures() {
    play(webhooks::PRESETS).await;
}

#[tokio::test]
async fn r13_contracts_without_a_key_leave_a_doubt_to_a_person() {
    play(keyless::PRESETS).await;
}

#[test]
fn r21_the_hint_of_twilio_is_a_line_that_a_person_can_use() {
    let twilio = all().find(|preset| preset.contract == "twilio.messages.create").expect("there");
    let (destination, operation) = twilio.configured("https://api.twilio.example");
    let hint = destination.hint(&operation, &twilio.intent(1, twilio.body), Some("2026-11-29"));
    let line = "GET https://api.twilio.example/2010-04-01/Accounts/AC1/Messages.json?To=%2B15550001&From=%2B15550002\
                &DateSent=2026-11-29";
    assert_eq!(hint, Some(Ok(line.to_owned())));
    assert!(matches!(destination.hint(&operation, &twilio.intent(1, "To=1"), None), Some(Err(_))));
}
