//! Requests while neither the API server sets requesters nor a webhook answers.

use super::{BY_ALICE, Case, SIMPLE};

/// What shows that nothing sets requesters.
pub(crate) const NO_ANSWER: Case = (
    "the end of what sets requesters",
    "alice",
    "POST actions",
    SIMPLE,
    422,
    "spec.requester is missing",
);

/// While nothing sets requesters.
pub(crate) const WITHOUT_WEBHOOK: &[Case] = &[
    (
        "a requester is missing",
        "alice",
        "POST actions",
        r#"{"metadata": {"name": "w"}, "spec": {"actionClass": "resolution"}}"#,
        422,
        r#"spec.requester is missing: neither the API server nor a webhook has set it; try again later, or set it to what \"kubectl auth whoami\" shows"#,
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
