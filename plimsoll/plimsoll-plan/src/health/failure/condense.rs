//! Many failures reported as one (CV-13).

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::{Effect, Reason};

use super::Failure;

/// Failures that a message lists; a server that is gone makes one of each manifest, and a status
/// of a megabyte is of no use. ReleaseProgress has them all.
const LISTED: usize = 30;

/// Merges failures into one: ClusterOperators of the same reason by that reason in the plural,
/// everything that is left after that as `MultipleErrors` with a list. `None` for no failures.
pub fn condense(failures: &[Failure]) -> Option<Failure> {
    let mut groups = groups(failures);
    if groups.len() <= 1 {
        return groups.pop();
    }
    let messages: BTreeSet<&str> = groups.iter().map(|group| group.message.as_str()).collect();
    let mut message = "Multiple errors are preventing progress:".to_owned();
    for line in messages.iter().take(LISTED) {
        message.push_str("\n* ");
        message.push_str(line);
    }
    if messages.len() > LISTED {
        message.push_str(&format!("\n* and {} more", messages.len() - LISTED));
    }
    let collected = |names: fn(&Failure) -> &Vec<String>| -> Vec<String> {
        groups.iter().flat_map(names).cloned().collect()
    };
    Some(Failure {
        reason: Reason::MultipleErrors,
        effect: None,
        message,
        objects: collected(|group| &group.objects),
        cluster_operators: Vec::new(),
        since: groups.iter().filter_map(|group| group.since).min(),
        trouble: None,
    })
}

/// Merges the failures of ClusterOperators by reason and leaves the others alone, which come
/// first. A group is as severe as its worst member and as old as its oldest.
pub fn groups(failures: &[Failure]) -> Vec<Failure> {
    let mut result = Vec::new();
    let mut operators: BTreeMap<&str, Vec<&Failure>> = BTreeMap::new();
    for failure in failures {
        if failure.cluster_operators.is_empty() {
            result.push(failure.clone());
        } else {
            operators.entry(failure.reason.as_str()).or_default().push(failure);
        }
    }
    result.extend(operators.into_values().map(|members| match members.as_slice() {
        [one] => (*one).clone(),
        members => plural(members),
    }));
    result
}

fn plural(members: &[&Failure]) -> Failure {
    let names: BTreeSet<&str> =
        members.iter().flat_map(|member| &member.cluster_operators).map(String::as_str).collect();
    let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    let listed = names.join(", ");
    let first = members.first().expect("a group has members");
    let (reason, message) = match first.reason {
        Reason::ClusterOperatorUpdating => (
            Reason::ClusterOperatorsUpdating,
            format!("Cluster operators {listed} are updating versions"),
        ),
        Reason::ClusterOperatorNotAvailable => (
            Reason::ClusterOperatorsNotAvailable,
            format!("Cluster operators {listed} are not available"),
        ),
        Reason::ClusterOperatorDegraded => {
            (Reason::ClusterOperatorsDegraded, format!("Cluster operators {listed} are degraded"))
        }
        reason => (reason, messages(members)),
    };
    Failure {
        reason,
        effect: severest(members),
        message,
        objects: members.iter().flat_map(|member| member.objects.clone()).collect(),
        cluster_operators: names,
        since: members.iter().filter_map(|member| member.since).min(),
        trouble: None,
    }
}

/// The worst effect of a group; a member without one is an error of its own, which no effect of
/// others softens.
fn severest(members: &[&Failure]) -> Option<Effect> {
    members.iter().map(|member| member.effect).collect::<Option<Vec<_>>>()?.into_iter().max()
}

/// The messages of failures of a reason that has no plural, each once.
fn messages(members: &[&Failure]) -> String {
    let unique: BTreeSet<&str> = members.iter().map(|member| member.message.as_str()).collect();
    unique.into_iter().collect::<Vec<_>>().join("; ")
}
