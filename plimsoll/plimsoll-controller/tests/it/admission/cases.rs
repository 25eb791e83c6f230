//! Requests of Actions and their answers. Bob's groups are those of everybody; Alice is in `dev` too.

/// Roles in namespace `default`: name, users, rules.
pub(super) const RIGHTS: &[(&str, &[&str], &str)] = &[
    (
        "users",
        &["alice", "bob", "carol", "robot"],
        r#"[{"apiGroups": ["olm.io"], "verbs": ["get", "list", "create", "update", "patch"],
             "resources": ["actions", "retryactions", "cronactions", "eventactions"]}]"#,
    ),
    (
        "approvers",
        &["carol"],
        r#"[{"apiGroups": ["olm.io"], "verbs": ["approve"], "resources": ["actions"]}]"#,
    ),
    (
        "controller",
        &["robot"],
        r#"[{"apiGroups": ["olm.io"], "verbs": ["patch"], "resources": ["actions/status"]}]"#,
    ),
];

/// A request: what it is, who sends it, method and path, body, status, and a part of what is said.
pub(super) type Case = (&'static str, &'static str, &'static str, &'static str, u16, &'static str);

const SIMPLE: &str = r#"{"metadata": {"name": "sign"}, "spec": {"actionClass": "resolution"}}"#;
const CRON: &str = r#"{"metadata": {"name": "sign"}, "spec": {"schedule": "0 3 * * *", "template": {"actionClass": "resolution"}}}"#;
const OF_EVE: &str = r#"{"metadata": {"name": "sign"}, "spec": {"actionClass": "resolution", "requester": {"username": "eve"}}}"#;
const BY_ALICE: &str =
    r#""requester":{"groups":["dev","system:authenticated"],"username":"alice"}"#;
const BY_BOB: &str = r#""requester":{"groups":["system:authenticated"],"username":"bob"}"#;

/// What shows that webhooks, roles and policies have taken effect.
pub(super) const SIGNS: &[Case] = &[
    ("Alice's requester", "alice", "POST actions", SIMPLE, 201, BY_ALICE),
    ("Bob's requester", "bob", "POST cronactions", CRON, 201, BY_BOB),
    ("the refusal of a requester", "bob", "POST actions", OF_EVE, 403, "who asks"),
    ("the controller's right", "robot", "POST actions", OF_EVE, 201, "eve"),
    (
        "the approver's right",
        "carol",
        "POST actions",
        r#"{"metadata": {"name": "sign"}, "spec": {"actionClass": "a", "approval": {"plan": "p", "approver": "eve"}}}"#,
        403,
        "who approves",
    ),
];

/// With the webhooks.
pub(super) const WITH_WEBHOOK: &[Case] = &[
    (
        "a requester that is left out is set",
        "alice",
        "POST actions",
        r#"{"metadata": {"name": "a"}, "spec": {"actionClass": "resolution", "package": "etcd"}}"#,
        201,
        BY_ALICE,
    ),
    (
        "a requester may name themselves",
        "alice",
        "POST actions",
        r#"{"metadata": {"generateName": "a-"}, "spec": {"actionClass": "resolution", "requester": {"username": "alice", "groups": ["system:authenticated", "dev"]}}}"#,
        201,
        r#""groups":["system:authenticated","dev"]"#,
    ),
    (
        "a requester of another name",
        "bob",
        "POST actions",
        r#"{"metadata": {"name": "b"}, "spec": {"actionClass": "resolution", "requester": {"username": "alice", "groups": ["dev", "system:authenticated"]}}}"#,
        403,
        r#"spec.requester.username is \"alice\", and it is \"bob\" who asks; leave spec.requester out"#,
    ),
    (
        "a requester with a group more",
        "bob",
        "POST actions",
        r#"{"metadata": {"name": "b"}, "spec": {"actionClass": "resolution", "requester": {"username": "bob", "groups": ["system:authenticated", "system:masters"]}}}"#,
        403,
        r#"spec.requester.groups are [system:authenticated, system:masters], and those of \"bob\" are [system:authenticated]; leave"#,
    ),
    (
        "a requester with a group less",
        "alice",
        "POST actions",
        r#"{"metadata": {"name": "b"}, "spec": {"actionClass": "resolution", "requester": {"username": "alice", "groups": ["dev"]}}}"#,
        403,
        "spec.requester.groups are [dev]",
    ),
    (
        "a requester without groups",
        "alice",
        "POST actions",
        r#"{"metadata": {"name": "b"}, "spec": {"actionClass": "resolution", "requester": {"username": "alice"}}}"#,
        403,
        "spec.requester.groups are [], and",
    ),
    (
        "a requester without a name",
        "alice",
        "POST actions",
        r#"{"metadata": {"name": "b"}, "spec": {"actionClass": "resolution", "requester": {"username": ""}}}"#,
        422,
        "spec.requester is missing",
    ),
    (
        "the controller creates an Action in the requester's name",
        "robot",
        "POST actions",
        r#"{"metadata": {"name": "child"}, "spec": {"actionClass": "resolution", "requester": {"username": "alice", "groups": ["dev"]}}}"#,
        201,
        r#""requester":{"groups":["dev"],"username":"alice"}"#,
    ),
    (
        "the package of an Action is changed",
        "alice",
        "PATCH actions/a",
        r#"{"spec": {"package": "postgres"}}"#,
        422,
        "spec.package cannot be changed: create another Action instead",
    ),
    (
        "fields of an Action are added and removed while it is cancelled",
        "alice",
        "PATCH actions/a",
        r#"{"spec": {"package": null, "channel": "stable", "cancelled": true}}"#,
        422,
        "spec.channel, spec.package cannot be changed",
    ),
    (
        "the requester of an Action is changed",
        "bob",
        "PATCH actions/a",
        r#"{"spec": {"requester": {"username": "bob"}}}"#,
        422,
        "spec.requester cannot be changed",
    ),
    (
        "the controller removes the requester of an Action",
        "robot",
        "PATCH actions/a",
        r#"{"spec": {"requester": null}}"#,
        422,
        "spec.requester cannot be changed",
    ),
    (
        "labels of an Action are changed",
        "bob",
        "PATCH actions/a",
        r#"{"metadata": {"labels": {"a": "b"}}}"#,
        200,
        BY_ALICE,
    ),
    (
        "the status is written",
        "robot",
        "PATCH actions/a/status",
        r#"{"status": {"state": "APPROVAL", "planDigest": "sha256:ab"}}"#,
        200,
        "sha256:ab",
    ),
    (
        "an approval without the verb",
        "alice",
        "PATCH actions/a",
        r#"{"spec": {"approval": {"plan": "sha256:ab", "approver": "alice"}}}"#,
        403,
        r#"\"alice\" may not change spec.approval: it takes the verb \"approve\" on actions in namespace \"default\""#,
    ),
    (
        "an approval without the verb, in the name of a user who has it",
        "alice",
        "PATCH actions/a",
        r#"{"spec": {"approval": {"plan": "sha256:ab", "approver": "carol"}}}"#,
        403,
        "may not change spec.approval",
    ),
    (
        "an approval at creation without the verb",
        "alice",
        "POST actions",
        r#"{"metadata": {"name": "b"}, "spec": {"actionClass": "resolution", "approval": {"plan": "sha256:ab", "approver": "alice"}}}"#,
        403,
        "may not change spec.approval",
    ),
    (
        "an approval at creation, of an Action without a name",
        "carol",
        "POST actions",
        r#"{"metadata": {"generateName": "a-"}, "spec": {"actionClass": "resolution", "approval": {"plan": "sha256:ab", "approver": "carol"}}}"#,
        201,
        r#""approval":{"approver":"carol","plan":"sha256:ab"}"#,
    ),
    (
        "an approval in the name of another user",
        "carol",
        "PATCH actions/a",
        r#"{"spec": {"approval": {"plan": "sha256:ab", "approver": "dora"}}}"#,
        403,
        r#"spec.approval.approver is \"dora\", and it is \"carol\" who approves"#,
    ),
    (
        "an approval",
        "carol",
        "PATCH actions/a",
        r#"{"spec": {"approval": {"plan": "sha256:ab", "approver": "carol"}}}"#,
        200,
        r#""approval":{"approver":"carol","plan":"sha256:ab"}"#,
    ),
    (
        "an approval is moved to another plan without the verb",
        "alice",
        "PATCH actions/a",
        r#"{"spec": {"approval": {"plan": "sha256:cd"}}}"#,
        403,
        "may not change spec.approval",
    ),
    (
        "an approval is removed without the verb",
        "alice",
        "PATCH actions/a",
        r#"{"spec": {"approval": null}}"#,
        403,
        "may not change spec.approval",
    ),
    (
        "an approval is removed",
        "carol",
        "PATCH actions/a",
        r#"{"spec": {"approval": null}}"#,
        200,
        BY_ALICE,
    ),
    (
        "an Action is cancelled",
        "alice",
        "PATCH actions/a",
        r#"{"spec": {"cancelled": true}}"#,
        200,
        r#""cancelled":true"#,
    ),
    (
        "a cancellation is taken back",
        "alice",
        "PATCH actions/a",
        r#"{"spec": {"cancelled": false}}"#,
        422,
        "spec.cancelled cannot be taken back",
    ),
    (
        "a cancelled Action is approved",
        "carol",
        "PATCH actions/a",
        r#"{"spec": {"approval": {"plan": "sha256:ab", "approver": "carol"}}}"#,
        200,
        r#""cancelled":true"#,
    ),
    (
        "a cancellation is removed",
        "alice",
        "PATCH actions/a",
        r#"{"spec": {"cancelled": null}}"#,
        422,
        "spec.cancelled cannot be taken back",
    ),
    (
        "a RetryAction has a requester",
        "alice",
        "POST retryactions",
        r#"{"metadata": {"name": "r"}, "spec": {"template": {"actionClass": "resolution"}}}"#,
        201,
        BY_ALICE,
    ),
    (
        "the attempts of a RetryAction are changed",
        "alice",
        "PATCH retryactions/r",
        r#"{"spec": {"backoffLimit": 9}}"#,
        422,
        "spec.backoffLimit cannot be changed: create another RetryAction instead",
    ),
    (
        "the template of a RetryAction is changed",
        "bob",
        "PATCH retryactions/r",
        r#"{"spec": {"template": {"actionClass": "autoremove"}}}"#,
        422,
        "cannot be changed",
    ),
    (
        "an EventAction has a requester",
        "alice",
        "POST eventactions",
        r#"{"metadata": {"name": "e"}, "spec": {"on": {"kind": "Catalog"}, "template": {"actionClass": "resolution"}}}"#,
        201,
        BY_ALICE,
    ),
    (
        "a CronAction has a requester",
        "alice",
        "POST cronactions",
        r#"{"metadata": {"name": "c"}, "spec": {"schedule": "0 3 * * *", "template": {"actionClass": "resolution"}}}"#,
        201,
        BY_ALICE,
    ),
    (
        "a CronAction in the name of another user",
        "bob",
        "POST cronactions",
        r#"{"metadata": {"name": "d"}, "spec": {"schedule": "0 3 * * *", "template": {"actionClass": "resolution"}, "requester": {"username": "alice", "groups": ["dev", "system:authenticated"]}}}"#,
        403,
        r#"it is \"bob\" who asks"#,
    ),
    (
        "a template with a requester",
        "bob",
        "POST cronactions",
        r#"{"metadata": {"name": "d"}, "spec": {"schedule": "0 3 * * *", "template": {"actionClass": "resolution", "requester": {"username": "alice"}}}}"#,
        422,
        "spec.template can have neither requester nor approval",
    ),
    (
        "a template with an approval",
        "carol",
        "POST eventactions",
        r#"{"metadata": {"name": "d"}, "spec": {"on": {"kind": "Catalog"}, "template": {"actionClass": "resolution", "approval": {"plan": "p", "approver": "carol"}}}}"#,
        422,
        "spec.template can have neither requester nor approval",
    ),
    (
        "who changes a template becomes its requester",
        "bob",
        "PATCH cronactions/c",
        r#"{"spec": {"template": {"actionClass": "autoremove"}}}"#,
        200,
        BY_BOB,
    ),
    (
        "a warning names the new requester",
        "alice",
        "PATCH cronactions/c",
        r#"{"spec": {"suspend": true}}"#,
        200,
        "what it makes is requested in this name",
    ),
    (
        "a template is changed in the name of another user",
        "bob",
        "PATCH eventactions/e",
        r#"{"spec": {"template": {"actionClass": "autoremove"}, "requester": {"username": "carol"}}}"#,
        403,
        r#"it is \"bob\" who asks"#,
    ),
    (
        "labels do not change the requester",
        "bob",
        "PATCH cronactions/c",
        r#"{"metadata": {"labels": {"a": "b"}}}"#,
        200,
        BY_ALICE,
    ),
    (
        "a requester that is removed stays",
        "bob",
        "PATCH cronactions/c",
        r#"{"spec": {"requester": null}}"#,
        200,
        BY_ALICE,
    ),
    (
        "what is applied has a requester",
        "alice",
        "APPLY cronactions/s?fieldManager=a",
        r#"{"metadata": {"name": "s"}, "spec": {"schedule": "0 3 * * *", "template": {"actionClass": "resolution"}}}"#,
        201,
        BY_ALICE,
    ),
    (
        "what is applied again keeps it",
        "alice",
        "APPLY cronactions/s?fieldManager=a",
        r#"{"metadata": {"name": "s"}, "spec": {"schedule": "0 4 * * *", "template": {"actionClass": "resolution"}}}"#,
        200,
        BY_ALICE,
    ),
    (
        "what is applied by another user has another one",
        "bob",
        "APPLY cronactions/s?fieldManager=a",
        r#"{"metadata": {"name": "s"}, "spec": {"schedule": "0 5 * * *", "template": {"actionClass": "resolution"}}}"#,
        200,
        BY_BOB,
    ),
    (
        "an Action is applied in the name of another user",
        "bob",
        "APPLY actions/s?fieldManager=a",
        r#"{"metadata": {"name": "s"}, "spec": {"actionClass": "resolution", "requester": {"username": "alice"}}}"#,
        403,
        r#"it is \"bob\" who asks"#,
    ),
];

/// What shows that the webhooks do not answer any more.
pub(super) const NO_ANSWER: Case =
    ("the end of the webhook", "alice", "POST actions", SIMPLE, 422, "spec.requester is missing");

/// While the webhooks do not answer.
pub(super) const WITHOUT_WEBHOOK: &[Case] = &[
    (
        "a requester is missing",
        "alice",
        "POST actions",
        r#"{"metadata": {"name": "w"}, "spec": {"actionClass": "resolution"}}"#,
        422,
        r#"spec.requester is missing: the webhook that sets it did not answer; try again later, or set it to what \"kubectl auth whoami\" shows"#,
    ),
    (
        "the controller's requester is missing",
        "robot",
        "POST actions",
        r#"{"metadata": {"name": "w"}, "spec": {"actionClass": "resolution"}}"#,
        422,
        "spec.requester is missing",
    ),
    (
        "the requester of a RetryAction is missing",
        "alice",
        "POST retryactions",
        r#"{"metadata": {"name": "w"}, "spec": {"template": {"actionClass": "resolution"}}}"#,
        422,
        "spec.requester is missing",
    ),
    (
        "a requester names themselves",
        "alice",
        "POST actions",
        r#"{"metadata": {"name": "w"}, "spec": {"actionClass": "resolution", "requester": {"username": "alice", "groups": ["dev", "system:authenticated"]}}}"#,
        201,
        BY_ALICE,
    ),
    (
        "a requester names another user",
        "bob",
        "POST actions",
        r#"{"metadata": {"name": "x"}, "spec": {"actionClass": "resolution", "requester": {"username": "alice", "groups": ["dev", "system:authenticated"]}}}"#,
        403,
        r#"it is \"bob\" who asks"#,
    ),
    (
        "a template is changed by another user than its requester",
        "bob",
        "PATCH cronactions/c",
        r#"{"spec": {"template": {"actionClass": "operator-delete"}}}"#,
        403,
        r#"it is \"bob\" who asks"#,
    ),
    (
        "a template is changed by its requester",
        "alice",
        "PATCH cronactions/c",
        r#"{"spec": {"template": {"actionClass": "resolution"}}}"#,
        200,
        BY_ALICE,
    ),
    (
        "a requester is removed",
        "alice",
        "PATCH cronactions/c",
        r#"{"spec": {"requester": null}}"#,
        422,
        "spec.requester is missing",
    ),
    (
        "labels of a CronAction are changed",
        "bob",
        "PATCH cronactions/c",
        r#"{"metadata": {"labels": {"a": "c"}}}"#,
        200,
        BY_ALICE,
    ),
    (
        "an Action is cancelled",
        "alice",
        "PATCH actions/w",
        r#"{"spec": {"cancelled": true}}"#,
        200,
        r#""cancelled":true"#,
    ),
];

const DELETE: &str = r#"{"metadata": {"name": "sign"}, "spec": {"actionClass": "operator-\"delete\"\\", "requester": {"username": "bob", "groups": ["system:authenticated"]}}}"#;
const AUTOREMOVE: &str = r#"{"metadata": {"name": "sign"}, "spec": {"actionClass": "autoremove"}}"#;
const WEBHOOK: &str = "guard.actions.plimsoll.io";
const REFUSED: &str = "no policy allows it to bob";

/// What shows that a class is guarded.
pub(super) const IS_GUARDED: Case = (
    "the guard",
    "bob",
    "POST actions",
    DELETE,
    403,
    r#"\"guard.actions.plimsoll.io\" denied the request: no policy allows it to bob"#,
);
/// What shows that a class is not guarded any more, while another one is.
pub(super) const IS_NOT_GUARDED: Case =
    ("the end of the guard of a class", "bob", "POST actions", AUTOREMOVE, 201, "");
/// What shows that no class is guarded any more.
pub(super) const NOTHING_IS_GUARDED: Case =
    ("the end of the guard", "bob", "POST actions", DELETE, 201, "");
/// What shows that the guard does not answer any more.
pub(super) const GUARD_FAILS: Case =
    ("the failure of the guard", "bob", "POST actions", DELETE, 500, WEBHOOK);
/// What shows that the webhooks are removed.
pub(super) const IS_REMOVED: Case =
    ("the end of the webhooks", "bob", "POST actions", DELETE, 201, "");

/// Requests while some classes are guarded.
pub(super) const GUARD: &[Case] = &[
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
        r#"{"metadata": {"name": "e"}, "spec": {"on": {"kind": "Catalog"}, "template": {"actionClass": "resolution"}}}"#,
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
pub(super) const GUARD_ASKED: [&str; 7] = [
    "Action no of bob by bob",
    "Action yes of alice by alice",
    "Action child of bob by robot",
    "RetryAction r of bob by bob",
    "CronAction c of alice by alice",
    "CronAction c of bob by bob",
    "EventAction e of bob by bob",
];

/// While the guard does not answer.
pub(super) const WITHOUT_GUARD: &[Case] = &[
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
