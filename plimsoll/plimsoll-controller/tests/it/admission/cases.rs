//! Requests of Actions and their answers. Bob's groups are those of everybody; Alice is in `dev` too.

mod class_names;
mod guard;
mod requesters;
mod status;
mod without_webhook;
mod wrong;

pub(super) use self::class_names::CLASS_NAMES;
pub(super) use self::guard::{
    GUARD, GUARD_ASKED, GUARD_FAILS, IS_GUARDED, IS_NOT_GUARDED, IS_REMOVED, NOTHING_IS_GUARDED,
    WITHOUT_GUARD,
};
pub(super) use self::requesters::REQUESTERS;
pub(super) use self::status::STATUS;
pub(super) use self::without_webhook::{NO_ANSWER, WITHOUT_WEBHOOK};
pub(super) use self::wrong::{CHECKED, CLASSES, COMPARED, OF_TEMPLATE, RIGHT, WRONG, Wrong};

/// Roles in namespace `default`: name, users, rules.
pub(super) const RIGHTS: &[(&str, &[&str], &str)] = &[
    (
        "users",
        &["alice", "bob", "carol", "gate", "robot"],
        r#"[{"apiGroups": ["olm.io"], "verbs": ["get", "list", "create", "update", "patch"],
             "resources": ["actions", "retryactions", "cronactions", "eventactions"]}]"#,
    ),
    (
        "approvers",
        &["carol", "gate"],
        r#"[{"apiGroups": ["olm.io"], "verbs": ["approve"], "resources": ["actions"]}]"#,
    ),
    (
        "controller",
        &["robot"],
        r#"[{"apiGroups": ["olm.io"], "verbs": ["patch"], "resources": ["actions/status"]}]"#,
    ),
    (
        "sealer",
        &["sealer"],
        r#"[{"apiGroups": ["olm.io"], "verbs": ["get", "list", "patch"],
             "resources": ["actions", "actions/status"]}]"#,
    ),
];

/// Rules in the whole cluster, of Dora.
pub(super) const CLASS_RIGHTS: &str = r#"[{"apiGroups": ["olm.io"],
    "verbs": ["get", "list", "create", "update", "patch"], "resources": ["actionclasses"]}]"#;

/// A request: what it is, who sends it, method and path, body, status, and a part of what is said.
pub(super) type Case = (&'static str, &'static str, &'static str, &'static str, u16, &'static str);

const SIMPLE: &str = r#"{"metadata": {"name": "sign"}, "spec": {"actionClass": "resolution"}}"#;
const CRON: &str = r#"{"metadata": {"name": "sign"}, "spec": {"schedule": "0 3 * * *", "template": {"actionClass": "resolution"}}}"#;
const OF_EVE: &str = r#"{"metadata": {"name": "sign"}, "spec": {"actionClass": "resolution", "requester": {"username": "eve"}}}"#;
const BY_ALICE: &str =
    r#""requester":{"groups":["dev","system:authenticated"],"username":"alice"}"#;
const BY_BOB: &str = r#""requester":{"groups":["system:authenticated"],"username":"bob"}"#;

/// What shows that roles and policies have taken effect, and the webhooks if they are needed.
pub(super) const SIGNS: &[Case] = &[
    ("Alice's requester", "alice", "POST actions", SIMPLE, 201, BY_ALICE),
    ("Bob's requester", "bob", "POST cronactions", CRON, 201, BY_BOB),
    ("the refusal of a requester", "bob", "POST actions", OF_EVE, 403, "who asks"),
    ("the controller's right", "robot", "POST actions", OF_EVE, 201, "eve"),
    ("the other controller's right", "sealer", "PATCH actions/sign/status", "{}", 404, "not found"),
    (
        "the approver's right",
        "carol",
        "POST actions",
        r#"{"metadata": {"name": "sign"}, "spec": {"actionClass": "a", "approvals": [{"plan": "p", "approver": "eve"}]}}"#,
        403,
        "who sends this",
    ),
];
