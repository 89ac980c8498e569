//! The contracts that are part of this program: what protocols promise, and what some providers say of one operation of
//! theirs. Each says where that is written and how sure it is.

/// The files by name, each with its text.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../deploy/contracts/", $name)))),*]
    };
}

/// File name and text of each.
pub(super) const FILES: [(&str, &str); 33] = files![
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
    "stripe.v1.payment_intents.create.toml",
    "stripe.v1.post.toml",
    "stripe.v2.post.toml",
    "telegram.message.send.toml",
    "twilio.messages.create.toml",
    "whop.post.toml",
    "zendesk.tickets.create.toml",
];
