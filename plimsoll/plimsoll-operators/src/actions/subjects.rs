//! Subjects of policies: users, groups and service accounts.

use plimsoll_api::olm::action::ActionRequester;
use plimsoll_api::olm::policy::{PolicySubject, SubjectKind};

/// The prefix of the user names of service accounts.
pub const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// Returns whether a user is a subject.
pub(super) fn is_subject(subject: &PolicySubject, requester: &ActionRequester) -> bool {
    match subject.kind {
        SubjectKind::User => subject.name == requester.username,
        SubjectKind::Group => requester.groups.contains(&subject.name),
        SubjectKind::ServiceAccount => {
            let account = requester.username.strip_prefix(SERVICE_ACCOUNT_PREFIX);
            account.and_then(|it| it.split_once(':'))
                == Some((subject.namespace.as_str(), subject.name.as_str()))
        }
    }
}

/// Returns a subject as text, such as `group sre`.
pub(super) fn subject_text(subject: &PolicySubject) -> String {
    let PolicySubject { kind, name, namespace } = subject;
    match kind {
        SubjectKind::User => format!("user {name}"),
        SubjectKind::Group => format!("group {name}"),
        SubjectKind::ServiceAccount => format!("service account {namespace}/{name}"),
    }
}
