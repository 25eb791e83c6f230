//! Failures in a few words, for the column that `kubectl get clusterversion` shows.

use plimsoll_api::{Effect, Reason};

use super::{Failure, condense};

/// Objects that a part of a summary names; more are counted.
const NAMED: usize = 3;

/// Says in a few words what keeps a release from being applied (CV-12.3); empty if
/// nothing does. Of several failures it tells the worst, and names all objects as far as there is
/// room.
pub fn summarize(failures: &[Failure]) -> String {
    let condensed = condense::groups(failures);
    let Some(worst) = worst(&condensed) else {
        return String::new();
    };
    let mut summary = one(worst);
    if condensed.len() == 1 {
        return summary;
    }
    let (same, others): (Vec<&Failure>, Vec<&Failure>) =
        condensed.iter().partition(|failure| failure.reason == worst.reason);
    let names_itself = worst.names().iter().all(|name| summary.contains(name.as_str()));
    if same.len() > 1 || !names_itself {
        summary.push_str(&format!(" ({})", names(&same)));
    }
    if !others.is_empty() {
        summary.push_str(&format!("; also {}", names(&others)));
    }
    summary
}

/// The first names of failures, and how many more there are.
fn names(failures: &[&Failure]) -> String {
    let names: Vec<&str> =
        failures.iter().flat_map(|failure| failure.names()).map(String::as_str).collect();
    let listed = names[..names.len().min(NAMED)].join(", ");
    match names.len().checked_sub(NAMED) {
        None | Some(0) => listed,
        Some(more) => format!("{listed} and {more} more"),
    }
}

/// The failure to tell about: the most severe one, and of these the first.
fn worst(failures: &[Failure]) -> Option<&Failure> {
    let severity = |failure: &Failure| failure.effect.unwrap_or(Effect::Fail);
    failures.iter().rev().max_by_key(|failure| severity(failure))
}

fn one(failure: &Failure) -> String {
    let name = failure.names().join(", ");
    let said: &str = match failure.reason {
        Reason::UpdatePayloadResourceNotFound | Reason::UpdatePayloadResourceConflict => {
            "some resources could not be updated"
        }
        Reason::UpdatePayloadClusterDown => "the control plane is down or not responding",
        Reason::UpdatePayloadClusterError => "the control plane is reporting an internal error",
        Reason::UpdatePayloadClusterOverloaded => {
            "the control plane is overloaded and is not accepting updates"
        }
        Reason::UpdatePayloadClusterUnauthorized => "could not authenticate to the server",
        Reason::UpdatePayloadRetrievalFailed => "could not download the update",
        Reason::UpdatePayloadResourceForbidden => "the server is rejecting updates",
        Reason::UpdatePayloadResourceTypeMissing => {
            "a required extension is not available to update"
        }
        Reason::UpdatePayloadResourceInvalid => "some cluster configuration is invalid",
        Reason::UpdatePayloadIntegrity => "the contents of the update are invalid",
        Reason::UpgradePreconditionCheckFailed => "it may not be safe to apply this update",
        Reason::ClusterOperatorsDegraded => "some cluster operators are degraded",
        Reason::ClusterOperatorsNotAvailable => "some cluster operators are not available",
        Reason::ClusterOperatorsUpdating => "some cluster operators are updating versions",
        Reason::UpdatePayloadFailed => "the update could not be applied",
        reason => return with_name(reason, &name),
    };
    said.to_owned()
}

/// Summaries that name the one object they are about.
fn with_name(reason: Reason, name: &str) -> String {
    match reason {
        Reason::ClusterOperatorDegraded => format!("the cluster operator {name} is degraded"),
        Reason::ClusterOperatorNotAvailable => {
            format!("the cluster operator {name} is not available")
        }
        Reason::ClusterOperatorUpdating => {
            format!("the cluster operator {name} is updating versions")
        }
        Reason::ClusterOperatorNoVersions => {
            format!("the cluster operator {name} does not declare expected versions")
        }
        Reason::WorkloadNotAvailable => {
            format!("the workload {name} has not yet successfully rolled out")
        }
        Reason::WorkloadNotProgressing => format!("the workload {name} cannot roll out"),
        Reason::WorkloadProgressing => format!("the workload {name} is rolling out"),
        Reason::JobRunning => format!("{name} is running"),
        Reason::JobFailed => format!("{name} failed"),
        Reason::ObjectTerminating => format!("{name} is being deleted"),
        Reason::NamespaceMissing => format!("the namespace of {name} does not exist"),
        Reason::NamespaceTerminating => format!("the namespace of {name} is being deleted"),
        Reason::CustomResourceDefinitionNotEstablished => format!("{name} is not served yet"),
        Reason::PrerequisitePending => format!("{name} waits for another object"),
        reason if name.is_empty() => format!("an unknown error has occurred: {reason}"),
        reason => format!("{name} has an unknown error: {reason}"),
    }
}
