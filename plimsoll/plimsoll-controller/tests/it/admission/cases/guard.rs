//! Requests while some classes are guarded, and what shows that they are.

use super::{BY_ALICE, BY_BOB, Case};

const DELETE: &str = r#"{"metadata": {"name": "sign"}, "spec": {"actionClass": "operator-\"delete\"\\", "requester": {"username": "bob", "groups": ["system:authenticated"]}}}"#;
const AUTOREMOVE: &str = r#"{"metadata": {"name": "sign"}, "spec": {"actionClass": "autoremove"}}"#;
const WEBHOOK: &str = "guard.actions.plimsoll.io";
const REFUSED: &str = "no policy allows it to bob";

/// What shows that a class is guarded.
pub(crate) const IS_GUARDED: Case = (
    "the guard",
    "bob",
    "POST actions",
    DELETE,
    403,
    r#"\"guard.actions.plimsoll.io\" denied the request: no policy allows it to bob"#,
);
/// What shows that a class is not guarded any more, while another one is.
pub(crate) const IS_NOT_GUARDED: Case =
    ("the end of the guard of a class", "bob", "POST actions", AUTOREMOVE, 201, "");
/// What shows that no class is guarded any more.
pub(crate) const NOTHING_IS_GUARDED: Case =
    ("the end of the guard", "bob", "POST actions", DELETE, 201, "");
/// What shows that the guard does not answer any more.
pub(crate) const GUARD_FAILS: Case =
    ("the failure of the guard", "bob", "POST actions", DELETE, 500, WEBHOOK);
/// What shows that the webhooks are removed.
pub(crate) const IS_REMOVED: Case =
    ("the end of the webhooks", "bob", "POST actions", DELETE, 201, "");

/// Requests while some classes are guarded.
pub(crate) const GUARD: &[Case] = &[
    (
        "a class that is not guarded",
        "bob",
        "POST actions",
        r#"{"metadata": {"name": "free"}, "spec": {"actionClass": "resolution"}}"#,
        201,
        BY_BOB,
    ),
    (
        "a guarded class that is refused",
        "bob",
        "POST actions",
        r#"{"metadata": {"name": "no"}, "spec": {"actionClass": "autoremove"}}"#,
        403,
        REFUSED,
    ),
    (
        "a guarded class that is allowed, with a warning",
        "alice",
        "POST actions",
        r#"{"metadata": {"name": "yes"}, "spec": {"actionClass": "autoremove"}}"#,
        201,
        "it is reviewed",
    ),
    (
        "an Action of a guarded class is cancelled",
        "bob",
        "PATCH actions/yes",
        r#"{"spec": {"cancelled": true}}"#,
        200,
        BY_ALICE,
    ),
    (
        "the controller requests in the name of a user who may not",
        "robot",
        "POST actions",
        r#"{"metadata": {"name": "child"}, "spec": {"actionClass": "autoremove", "requester": {"username": "bob"}}}"#,
        403,
        REFUSED,
    ),
    (
        "a template of a guarded class is refused",
        "bob",
        "POST retryactions",
        r#"{"metadata": {"name": "r"}, "spec": {"template": {"actionClass": "autoremove"}}}"#,
        403,
        REFUSED,
    ),
    (
        "a template of a guarded class is allowed",
        "alice",
        "POST cronactions",
        r#"{"metadata": {"name": "c"}, "spec": {"schedule": "0 3 * * *", "template": {"actionClass": "autoremove"}}}"#,
        201,
        BY_ALICE,
    ),
    (
        "its requester suspends it, which is not decided about",
        "alice",
        "PATCH cronactions/c",
        r#"{"spec": {"suspend": true}}"#,
        200,
        BY_ALICE,
    ),
    (
        "another user takes it over",
        "bob",
        "PATCH cronactions/c",
        r#"{"spec": {"suspend": false}}"#,
        403,
        REFUSED,
    ),
    (
        "a template of a class that is not guarded",
        "bob",
        "POST eventactions",
        r#"{"metadata": {"name": "e"}, "spec": {"trigger": {"kind": "Catalog"}, "template": {"actionClass": "resolution"}}}"#,
        201,
        BY_BOB,
    ),
    (
        "it becomes one of a guarded class",
        "bob",
        "PATCH eventactions/e",
        r#"{"spec": {"template": {"actionClass": "autoremove"}}}"#,
        403,
        REFUSED,
    ),
];

/// What the guard was asked meanwhile.
pub(crate) const GUARD_ASKED: [&str; 7] = [
    "Action no of bob by bob",
    "Action yes of alice by alice",
    "Action child of bob by robot",
    "RetryAction r of bob by bob",
    "CronAction c of alice by alice",
    "CronAction c of bob by bob",
    "EventAction e of bob by bob",
];

/// While the guard does not answer.
pub(crate) const WITHOUT_GUARD: &[Case] = &[
    (
        "a class that is not guarded",
        "bob",
        "POST actions",
        r#"{"metadata": {"name": "free2"}, "spec": {"actionClass": "resolution", "requester": {"username": "bob", "groups": ["system:authenticated"]}}}"#,
        201,
        BY_BOB,
    ),
    (
        "a guarded class",
        "alice",
        "POST actions",
        r#"{"metadata": {"name": "yes2"}, "spec": {"actionClass": "operator-\"delete\"\\", "requester": {"username": "alice", "groups": ["dev", "system:authenticated"]}}}"#,
        500,
        WEBHOOK,
    ),
];
