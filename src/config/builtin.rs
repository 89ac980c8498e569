//! The contracts that are part of this program: what protocols promise, and what some providers say of one operation of
//! theirs. Each says where that is written and how sure it is.

use std::collections::BTreeMap;

use toml::de::DeTable;

use super::contract::{self, Promise};
use super::problem::{Origin, Problems};
use super::table::{Layer, Table};

/// The files by name, each with its text.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../deploy/contracts/", $name)))),*]
    };
}

/// File name and text of each.
pub(super) const FILES: [(&str, &str); 34] = files![
    "adyen.checkout.payments.toml",
    "aws.sqs.fifo.send.toml",
    "brevo.smtp.send.toml",
    "checkout.payments.create.toml",
    "discord.message.create.toml",
    "emailit.emails.send.toml",
    "github.post.toml",
    "gocardless.payments.create.toml",
    "http.idempotency-key.toml",
    "http.post.toml",
    "http.put.toml",
    "hubspot.single_send.toml",
    "increase.ach_transfers.create.toml",
    "intercom.messages.create.toml",
    "linear.issue.create.toml",
    "nylas.messages.send.toml",
    "paypal.orders.create.toml",
    "paypal.payments.v2.post.toml",
    "paypal.payouts.create.toml",
    "plaid.transfer.create.toml",
    "qonto.post.toml",
    "resend.emails.send.toml",
    "salesforce.sobject.upsert.toml",
    "sendgrid.mail.send.toml",
    "slack.chat.postMessage.toml",
    "square.payments.create.toml",
    "standard-webhooks.deliver.toml",
    "stripe.v1.payment_intents.create.toml",
    "stripe.v1.post.toml",
    "stripe.v2.post.toml",
    "telegram.message.send.toml",
    "twilio.messages.create.toml",
    "whop.post.toml",
    "zendesk.tickets.create.toml",
];

/// Every built-in contract, by name: what there is without any configuration.
pub fn contracts() -> BTreeMap<String, Promise> {
    let problems = Problems::default();
    let trees = trees(&problems);
    let promises = contract::parse_all(&[], &tables(&problems, &trees));
    promises.into_iter().filter_map(|(name, promise)| Some((name, promise?))).collect()
}

/// A text, and what it holds.
pub(super) type Read = (Origin, Option<DeTable<'static>>);

/// Every file, read.
pub(super) fn trees(problems: &Problems) -> Vec<Read> {
    let read = |(name, text)| {
        let origin = Origin::new(name, text);
        let tree = super::tree(problems, &origin, text);
        (origin, tree)
    };
    FILES.into_iter().map(read).collect()
}

/// The table of every contract, by name.
pub(super) fn tables<'a>(problems: &'a Problems, trees: &'a [Read]) -> Vec<(String, Table<'a>)> {
    let read = trees.iter().filter_map(|(origin, tree)| Some((origin, tree.as_ref()?)));
    let tops = read.map(|(origin, table)| Table::top(problems, Layer { table, origin }));
    tops.flat_map(|top| top.named("contract")).collect()
}

/// What one must know of a built-in contract: the comment above it.
pub fn about(name: &str) -> Option<String> {
    let (_, text) = FILES.iter().find(|(file, _)| file.strip_suffix(".toml") == Some(name))?;
    let lines: Vec<_> = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim_end).collect();
    let lines = lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line));
    Some(lines.collect::<Vec<_>>().join("\n"))
}
