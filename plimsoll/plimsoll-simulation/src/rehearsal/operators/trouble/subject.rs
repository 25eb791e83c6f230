//! Subjects of troubles: the requirements and objects that they are about. Two troubles of an Operator are the same
//! if they are of one kind and about the same, in whichever words.

use std::collections::BTreeSet;

use plimsoll_api::olm::OperatorStatus;
use plimsoll_controller::operators::INVALIDATED;

use super::{OperatorTrouble, TroubleKind};

/// Returns what a trouble is about: requirements or objects, or else the clauses of its message.
pub(super) fn subjects(trouble: &OperatorTrouble, status: &OperatorStatus) -> BTreeSet<String> {
    let OperatorTrouble { kind, reason, message, .. } = trouble;
    let named = match kind {
        TroubleKind::Unsatisfied if reason == "UnmetDependency" => unmet(status),
        TroubleKind::Unsatisfied => BTreeSet::new(),
        TroubleKind::Stuck => objects(message),
        TroubleKind::Invalidated => invalidated(message),
    };
    if named.is_empty() { clauses(reason, message) } else { named }
}

/// Returns the requirements that are not satisfied.
fn unmet(status: &OperatorStatus) -> BTreeSet<String> {
    let unmet = status.dependencies.iter().filter(|it| !it.satisfied);
    unmet.map(|it| it.requirement.clone()).collect()
}

/// Returns the objects that a message names, as conditions do: the kind, and the name in quotes.
fn objects(message: &str) -> BTreeSet<String> {
    let mut parts = message.split('"');
    let mut named = BTreeSet::new();
    while let (Some(before), Some(name)) = (parts.next(), parts.next()) {
        // At the beginning of a message it has a capital letter.
        let kind = before.split_whitespace().next_back().unwrap_or_default().to_lowercase();
        named.insert(format!("{kind} {name}"));
    }
    named
}

/// Returns the objects that a message says would be invalid, without why they would.
fn invalidated(message: &str) -> BTreeSet<String> {
    let lists = message.split(INVALIDATED).skip(1);
    let objects = lists.flat_map(|it| it.split("), "));
    let objects = objects.map(|it| it.split(" (").next().unwrap_or(it));
    objects.map(|it| it.trim_start_matches([':', ' ']).to_owned()).collect()
}

/// Returns the clauses of a message that names no object: of one about a requirement, without what is there instead,
/// and of one about progress, without how far it is.
fn clauses(reason: &str, message: &str) -> BTreeSet<String> {
    if reason == "RollingOut" {
        return message.split(": ").take(1).map(str::to_owned).collect();
    }
    let clauses = message.split("; ").map(|it| it.split(" but ").next().unwrap_or(it));
    clauses.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    //! Messages of conditions, and what they are about.

    use super::*;

    #[track_caller]
    fn check(kind: TroubleKind, reason: &str, message: &str, expected: &[&str]) {
        let trouble = OperatorTrouble {
            operator: "foo".to_owned(),
            kind,
            reason: reason.to_owned(),
            message: message.to_owned(),
            is_earlier: false,
            is_accepted: false,
        };
        let found = subjects(&trouble, &OperatorStatus::default());
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{message}");
    }

    #[test]
    fn messages_name_objects_requirements_or_neither() {
        use TroubleKind::{Invalidated, Stuck, Unsatisfied};
        let waits = "Rolling out v1.0.0: 3 of 12 objects, waiting on deployment.apps \"foo/foo\" is not available";
        check(Stuck, "RollingOut", waits, &["deployment.apps foo/foo"]);
        let failed = "Rollout of v1.0.0 failed: it is not complete after 8s: Deployment.apps \"foo/foo\" fails";
        check(Stuck, "InstallationFailed", failed, &["deployment.apps foo/foo"]);
        let counted = "Rolling out v1.0.0: 3 of 12 objects";
        check(Stuck, "RollingOut", counted, &["Rolling out v1.0.0"]);
        let held = "foo v2.0.0 waits: bar depends on foo <2.0.0 but foo is at 2.0.0; foo is not upgradeable: no";
        let clauses = ["foo is not upgradeable: no", "foo v2.0.0 waits: bar depends on foo <2.0.0"];
        check(Stuck, "UpgradeBlocked", held, &clauses);
        let invalid = "foo.v2.0.0 changes definitions: foos.foo.example.com: objects would be invalid: Foo a/b \
                       (spec.size: \"6\" is too large), Foo c (spec: Required value), and 3 more";
        check(Invalidated, "UpgradeBlocked", invalid, &["Foo a/b", "Foo c", "and 3 more"]);
        let unmet = "foo depends on bar >=1.0.0 but bar is not installed";
        check(Unsatisfied, "UnmetDependency", unmet, &["foo depends on bar >=1.0.0"]);
        let old = "Kubernetes 1.30 is required";
        check(Unsatisfied, "ClusterIncompatible", old, &[old]);
    }
}
