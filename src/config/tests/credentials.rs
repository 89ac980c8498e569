//! Signatures and tokens: what they need, and what agrees with what.

use super::*;
use crate::core::credentials::{ClientAuth, Scheme};
use crate::core::target::Auth;

const SIGN: &str = "sign = { scheme = \"standard-webhooks\", secrets = [{ env = \"WEBHOOKS\" }] }";
const ASKS: &str = "[contract.c]\nreconcile = [\"resend\"]\nkey = { mode = \"receiver\", place = \"header:webhook-id\" }\n\
                    sign = { scheme = \"standard-webhooks-v1\" }\n";

fn under(contract: &str, auth: &str, operation: &str) -> String {
    file(auth, operation, contract).replace("http.post", "c")
}

#[test]
fn requests_are_signed_with_one_key_or_with_several_alone_or_beside_another_way() {
    let both = SIGN.replace("}]", "}, { env = \"WEBHOOKS_NEXT\" }]");
    for (auth, keys) in [
        (format!("auth = {{ {SIGN} }}"), 1),
        (format!("auth = {{ {both} }}"), 2),
        (format!("auth = {{ {SIGN}, bearer = {{ env = \"TOKEN\" }} }}"), 1),
    ] {
        let config = accepted(&under(ASKS, &auth, ""));
        let signing = config.targets["d"].signing.as_ref().expect("it signs");
        assert_eq!((signing.scheme, signing.keys.len()), (Scheme::StandardWebhooks, keys));
        assert_eq!(config.operations["o"].terms.contract.sign, Some(Scheme::StandardWebhooks));
        let shown = format!("{} {config:?}", config.describe());
        assert!(shown.contains("secrets = [\"[secret]\"") && !shown.contains("MfKQ9r8"), "{shown}");
        assert_eq!(config.warnings(), []);
    }
    let unread = Config::parse(&under(ASKS, &format!("auth = {{ {SIGN} }}"), ""), "x", Secrets::Skip, &|_| None);
    assert!(unread.expect("secrets are not read").targets["d"].signing.is_some());
}

#[test]
fn a_contract_that_asks_for_signatures_needs_them_and_unasked_ones_are_said() {
    assert_eq!(
        refused(&under(ASKS, "", "")),
        [
            "outboxd.toml:9: operation \"o\": contract \"c\" needs signed requests; give [destination.d] an `auth` with `sign`"
        ]
    );
    let config = accepted(&file(&format!("auth = {{ {SIGN} }}"), "", ""));
    let said: Vec<_> = config.warnings().iter().map(ToString::to_string).collect();
    let unasked = "o: [destination.d] signs its requests, and contract \"http.post\" does not say that anybody looks at \
                   signatures (`sign`)";
    assert!(said.iter().any(|said| said == unasked), "{said:?}");
}

#[test]
fn what_cannot_sign_is_refused_with_its_line_and_never_shown() {
    let with = |secrets: &str| {
        refused(&under(ASKS, &format!("auth.sign = {{ scheme = \"standard-webhooks\", secrets = {secrets} }}"), ""))
    };
    for (secrets, complaint) in [
        ("[]", "must not be an empty list"),
        ("[{ env = \"TOKEN\" }]", "is a secret that begins with neither `whsec_`"),
        ("[{ env = \"WEBHOOKS\" }, { env = \"UNSET\" }]", "needs the environment variable UNSET, which is not set"),
        ("[{ env = \"WEBHOOKS\" }, { }]", "needs either `env` or `file`"),
        ("[\"whsec_hunter2\"]", "must hold tables, found a string"),
        ("{ env = \"WEBHOOKS\" }", "must be a list, found a table"),
    ] {
        let told = with(secrets);
        assert!(
            told.len() == 1 && told[0].starts_with("outboxd.toml:5: `secrets` in [destination.d.auth.sign] "),
            "{told:?}"
        );
        assert!(told[0].contains(complaint) && !told[0].contains("hunter2"), "{told:?}");
    }
    let short = refused(&under(ASKS, "auth = { sign = \"standard-webhooks\" }", ""));
    assert!(short[0].contains("must say with what; write `{ scheme = \"standard-webhooks\", secrets ="), "{short:?}");
    let other = refused(&under(ASKS, &format!("auth = {{ {} }}", SIGN.replace("webhooks\"", "webhook\"")), ""));
    assert!(other[0].contains("did you mean \"standard-webhooks\"?"), "{other:?}");
}

#[test]
fn nothing_else_sets_a_header_of_the_signature() {
    let auth = format!("auth = {{ {SIGN} }}");
    let request = |headers: &str| {
        under(ASKS, &auth, "").replace("path = \"/x\" }", &format!("path = \"/x\", headers = {{ {headers} }} }}"))
    };
    let told = refused(&request("Webhook-Timestamp = \"1\""));
    assert!(
        told[0].ends_with("header `webhook-timestamp` is set twice: the destination's `sign` writes it too"),
        "{told:?}"
    );
    let also = ASKS.replace("webhook-id\"", "webhook-id\", also = { \"header:Webhook-Signature\" = \"x\" }");
    let told = refused(&under(&also, &auth, ""));
    assert!(
        told[0].ends_with("header `webhook-signature` is set twice: the destination's `sign` writes it too"),
        "{told:?}"
    );
    let header = "header = { name = \"Webhook-Signature\", value = { env = \"TOKEN\" } }";
    let told = refused(&under(ASKS, &format!("auth = {{ {SIGN}, {header} }}"), ""));
    assert!(told[0].contains("is a header that `sign` writes"), "{told:?}");
}

#[test]
fn what_differs_in_every_attempt_follows_from_the_scheme() {
    let auth = format!("auth = {{ {SIGN} }}");
    let told = refused(&under(&ASKS.replace("-v1\"", "-v1\", per_attempt = [\"webhook-id\"]"), &auth, ""));
    assert!(told[0].ends_with("must be webhook-timestamp and webhook-signature, or left out"), "{told:?}");
}

const OAUTH2: &str =
    "token_url = \"https://id.example/token?tenant=1\", client_id = \"us\", client_secret = { env = \"TOKEN\" }";

#[test]
fn client_credentials_are_read_and_shown_without_the_secret() {
    let auth = |more: &str| format!("auth = {{ oauth2 = {{ {OAUTH2}{more} }} }}");
    let config = accepted(&file(&auth(""), "", ""));
    let Auth::OAuth2(client) = &config.targets["d"].auth else { panic!("{:?}", config.targets["d"].auth) };
    assert_eq!((client.client_auth, &client.scope, &client.audience), (ClientAuth::Basic, &None, &None));
    let config = accepted(&file(&auth(", client_auth = \"post\", scope = \"a b\", audience = \"c\""), "", ""));
    let shown = format!("{} {config:?}", config.describe());
    let line = "auth = { oauth2 = { token_url = \"https://id.example/token?tenant=1\", client_id = \"us\", client_secret = \
                \"[secret]\", client_auth = \"post\", scope = \"a b\", audience = \"c\" } }";
    assert!(shown.contains(line) && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn credentials_that_go_to_a_host_from_data_are_refused_unless_that_is_meant_and_signatures_are_not() {
    let text = |url: &str, auth: &str| under(ASKS, &format!("auth = {{ {SIGN}{auth} }}"), "").replace("http://d", url);
    let said = |url: &str, auth: &str| {
        accepted(&text(url, auth)).warnings().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let bearer = ", bearer = { env = \"TOKEN\" }";
    let oauth2 = format!(", oauth2 = {{ {OAUTH2} }}");
    for auth in [bearer, &oauth2, ", header = { name = \"x-api-key\", value = { env = \"TOKEN\" } }"] {
        let told = refused(&text("https://{shop}.example", auth));
        assert!(
            told.len() == 1 && told[0].contains("whoever writes params could have them; name the host"),
            "{told:?}"
        );
        assert!(told[0].contains("write `any_host = true`") && !told[0].contains("hunter2"), "{told:?}");
    }
    let meant = format!("{bearer}, any_host = true");
    let shown = accepted(&text("https://{shop}.example", &meant)).describe();
    assert!(shown.contains("any_host = true"), "{shown}");
    assert_eq!(
        said("https://{shop}.example", &meant),
        [
            "o: the host of [destination.d] comes from params, and its credentials are sent there: whoever writes params can \
             have them"
        ]
    );
    assert_eq!(said("https://{shop}.example", ""), [""; 0]);
    assert_eq!(said("https://a.example/{shop}", bearer), [""; 0]);
}

#[test]
fn client_credentials_that_cannot_work_are_refused() {
    let told =
        refused(&file("auth.oauth2 = { token_url = \"id.example\", client_secret = { env = \"UNSET\" } }", "", ""));
    assert_eq!(told.len(), 3, "{told:?}");
    for part in ["`token_url` in [destination.d.auth.oauth2] must be https://", "`client_id` is missing", "UNSET"] {
        assert!(told.iter().any(|told| told.contains(part)), "{part}: {told:?}");
    }
    let two = refused(&file(&format!("auth = {{ oauth2 = {{ {OAUTH2} }}, bearer = {{ env = \"TOKEN\" }} }}"), "", ""));
    assert!(two[0].contains("exactly one of `bearer`, `basic`, `header`, `oauth2`"), "{two:?}");
}
