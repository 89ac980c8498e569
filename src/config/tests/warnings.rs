//! What is accepted and deserves a word (R20).

use super::*;

const KEY: &str = "key = { mode = \"dedupe\", place = \"json:/k\", window = \"2h\" }\n";
const LOOKUP: &str = "[contract.c.lookup]\nby = \"key\"\nrequest = { method = \"GET\", path = \"/x/{key}\" }\n\
                      found = { status = 200 }\nabsent = { status = 404 }\n";

fn warnings(destination: &str, operation: &str, contract: &str) -> Vec<String> {
    let text = file(destination, operation, &format!("[contract.c]\n{contract}")).replace("http.post", "c");
    accepted(&text).warnings().iter().map(ToString::to_string).collect()
}

#[test]
fn r20_an_operation_that_nothing_can_settle_is_warned_of() {
    let nothing = ["o: nothing can settle an unknown outcome; every one becomes a review for o"];
    assert_eq!(warnings("", "", "reconcile = []"), nothing);
    let text = file("", "", &format!("[contract.c]\nreconcile = [\"resend\"]\n{KEY}")).replace("http.post", "c");
    let config = accepted(&text.replace("compensatable", "unreconcilable"));
    assert_eq!(config.warnings().iter().map(ToString::to_string).collect::<Vec<_>>(), nothing);
}

#[test]
fn r20_a_memory_shorter_than_the_attempts_is_warned_of() {
    let contract = format!("reconcile = [\"resend\"]\n{KEY}");
    assert_eq!(
        warnings("", "", &contract),
        [
            "o: the destination remembers a key for 2h, and attempts go on for 1d (`elapsed_max`): an outcome that is unknown \
          for longer is not resent any more"
        ]
    );
    assert_eq!(warnings("", "elapsed_max = \"2h\"", &contract), [""; 0]);
    assert_eq!(warnings("", "", &contract.replace("2h", "1d")), [""; 0]);
}

#[test]
fn r20_a_lookup_that_proves_nothing_is_warned_of() {
    let contract = |lookup: &str| format!("reconcile = [\"lookup\"]\n{KEY}{lookup}absence = \"after:1m\"\n");
    assert_eq!(warnings("", "", &contract(LOOKUP)), [""; 0]);
    // Where finding nothing is believed, none of these is accepted.
    let unproved = |lookup: &str| {
        warnings("", "elapsed_max = \"2h\"", &format!("reconcile = [\"resend\", \"lookup\"]\n{KEY}{lookup}"))
    };
    let blind = LOOKUP.replace("/x/{key}", "/x/{day}");
    assert_eq!(
        unproved(&blind),
        [
            "o: what its lookup finds is no proof, because it neither asks by `{key}` or `{ref}` nor compares one; all that is \
          found becomes a review for o"
        ]
    );
    let header = blind.replace("/x/{day}\"", "/x\", headers = { k = \"{key}\" }");
    assert_eq!(unproved(&header).len(), 1, "a header is not what is asked for");
    assert_eq!(unproved(&format!("{blind}compare = {{ \"/k\" = \"json:/k\" }}\n")), [""; 0]);
    assert_eq!(unproved(&format!("{blind}compare = {{ \"/a\" = \"json:/a\" }}\n")).len(), 1);
    let natural = format!("reconcile = [\"resend\", \"lookup\"]\nkey = {{ mode = \"natural\" }}\n{LOOKUP}");
    assert_eq!(warnings("", "", &natural).len(), 1, "the path is the application's own name, not the key");
    assert_eq!(
        warnings("", "", &contract(LOOKUP).replace("after:1m", "never")),
        [
            "o: its lookup can prove that it happened, never that it did not (`absence` is \"never\"), and nothing else is \
          tried; what is not found within 1d (`review_after`) becomes a review for o"
        ]
    );
}

#[test]
fn r20_a_cancel_that_is_never_final_is_warned_of() {
    let cancel = format!(
        "reconcile = [\"cancel\"]\n{KEY}[contract.c.cancel]\nrequest = {{ method = \"DELETE\", path = \"/{{key}}\" }}\n\
         done = {{ status = 200 }}\n"
    );
    assert_eq!(
        warnings("", "", &cancel),
        ["o: a confirmed cancel is never final (`absence` is \"never\"); every one becomes a review for o"]
    );
    assert_eq!(warnings("", "", &format!("{cancel}absence = \"after:1m\"")), [""; 0]);
}

#[test]
fn r18_credentials_of_an_account_without_a_name_are_warned_of() {
    let contract =
        format!("reconcile = [\"resend\"]\n{}", KEY.replace("2h\"", "1d\", pins = [\"credential-account\"]"));
    let auth = "auth = { bearer = { env = \"TOKEN\" } }";
    assert_eq!(
        warnings(auth, "", &contract),
        [
            "o: its contract holds a key to the account that used it, and [destination.d] names no `account`: nobody would \
          notice that the credentials have become another's"
        ]
    );
    assert_eq!(warnings("", "", &contract), [""; 0]);
    assert_eq!(warnings(&format!("account = \"live\"\n{auth}"), "", &contract), [""; 0]);
}

#[test]
fn what_is_accepted_without_being_verified_is_said() {
    let contract = format!("reconcile = [\"resend\"]\n{}", KEY.replace("2h\"", "1d\", window_trust = \"memory\""));
    assert_eq!(
        warnings("", "allow_unverified = true", &contract),
        ["o: it rests on what nobody has verified: key.window"]
    );
}
