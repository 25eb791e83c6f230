//! Whether an object that has been applied does what it was applied for (CV-8.4).
//!
//! # Departure from upstream
//!
//! Upstream looks at a Deployment once and goes on unless it is plainly broken; it looks neither
//! at DaemonSets nor at Jobs that run. Here a workload is awaited: until the controller has seen
//! the latest generation and the rollout is finished, or the Job has succeeded.

use plimsoll_api::{Effect, Reason, Verdict};
use serde_json::Value;

use crate::health::parse;

/// Judges an object of a kind that is awaited; `None` for kinds of which applied is enough.
pub fn workload(group: &str, kind: &str, live: &Value) -> Option<Verdict> {
    match (group, kind) {
        ("apps", "Deployment") => Some(deployment(live)),
        ("apps", "DaemonSet") => Some(daemon_set(live)),
        ("apps", "StatefulSet") => Some(stateful_set(live)),
        ("batch", "Job") => Some(job(live)),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Some(custom_resource(live)),
        ("", "PersistentVolumeClaim") => Some(claim(live)),
        ("cert-manager.io", "Certificate") => Some(certificate(live)),
        ("apiregistration.k8s.io", "APIService") => Some(api_service(live)),
        _ => None,
    }
}

/// Judges a Deployment: all replicas updated and available, none of the old ones left.
pub fn deployment(live: &Value) -> Verdict {
    let subject = subject("Deployment", live);
    if let Some(verdict) =
        deployment_trouble(&subject, live).or_else(|| generation_not_observed(&subject, live))
    {
        return verdict;
    }
    let wanted = parse::number(live, &["spec", "replicas"]).unwrap_or(1);
    let counts = Counts {
        wanted,
        updated: status(live, "updatedReplicas"),
        available: status(live, "availableReplicas"),
        noun: "replicas",
    };
    let old = status(live, "replicas") - counts.updated;
    counts.verdict(&subject).unwrap_or_else(|| {
        if old > 0 {
            return progressing(format!("{subject} still runs {old} outdated replicas"));
        }
        Verdict::Ready
    })
}

/// Judges a DaemonSet: on every node it is meant for, updated and available.
pub fn daemon_set(live: &Value) -> Verdict {
    let subject = subject("DaemonSet", live);
    if let Some(verdict) =
        terminating(&subject, live).or_else(|| generation_not_observed(&subject, live))
    {
        return verdict;
    }
    let wanted = status(live, "desiredNumberScheduled");
    let available = status(live, "numberAvailable");
    let updated =
        if updates_on_delete(live) { wanted } else { status(live, "updatedNumberScheduled") };
    Counts { wanted, updated, available, noun: "pods" }.verdict(&subject).unwrap_or(Verdict::Ready)
}

/// Judges a StatefulSet: all replicas updated and available.
pub fn stateful_set(live: &Value) -> Verdict {
    let subject = subject("StatefulSet", live);
    if let Some(verdict) =
        terminating(&subject, live).or_else(|| generation_not_observed(&subject, live))
    {
        return verdict;
    }
    let replicas = parse::number(live, &["spec", "replicas"]).unwrap_or(1);
    let partition =
        parse::number(live, &["spec", "updateStrategy", "rollingUpdate", "partition"]).unwrap_or(0);
    let outside = if updates_on_delete(live) { replicas } else { partition.clamp(0, replicas) };
    let counts = Counts {
        wanted: replicas,
        // Replicas that the update strategy leaves alone count as updated.
        updated: (status(live, "updatedReplicas") + outside).min(replicas),
        available: status(live, "availableReplicas"),
        noun: "replicas",
    };
    counts.verdict(&subject).unwrap_or(Verdict::Ready)
}

/// Judges a Job: it must have succeeded.
pub fn job(live: &Value) -> Verdict {
    let subject = subject("Job", live);
    if let Some(failed) = parse::condition(live, "Failed").filter(|failed| failed.status == "True")
    {
        let message = format!("{subject} failed{}", because(failed.reason, failed.message));
        return waiting(Effect::Fail, Reason::JobFailed, message);
    }
    if parse::has_condition(live, "Complete", "True") {
        return Verdict::Ready;
    }
    if let Some(verdict) = terminating(&subject, live) {
        return verdict;
    }
    let (active, failed) = (status(live, "active"), status(live, "failed"));
    let wanted = parse::number(live, &["spec", "completions"]).unwrap_or(1);
    let succeeded = status(live, "succeeded");
    let mut message = format!("{subject} is running: {succeeded} of {wanted} pods succeeded");
    if active == 0 && failed == 0 {
        message = format!("{subject} has not started a pod yet");
    } else if failed > 0 {
        message = format!("{message}, {failed} failed");
    }
    waiting(Effect::None, Reason::JobRunning, message)
}

/// Judges a CustomResourceDefinition: its names accepted and its kinds served.
pub fn custom_resource(live: &Value) -> Verdict {
    let subject = subject("CustomResourceDefinition", live);
    if let Some(verdict) = terminating(&subject, live) {
        return verdict;
    }
    if parse::has_condition(live, "Established", "True") {
        return Verdict::Ready;
    }
    let reason = Reason::CustomResourceDefinitionNotEstablished;
    match parse::condition(live, "NamesAccepted").filter(|names| names.status == "False") {
        Some(names) => {
            let because = because(names.reason, names.message);
            waiting(Effect::Fail, reason, format!("{subject} cannot be served{because}"))
        }
        None => waiting(Effect::None, reason, format!("{subject} is not established yet")),
    }
}

/// Annotations of a claim for which a volume is being provisioned.
const PROVISIONERS: [&str; 2] =
    ["volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner"];

/// Judges a PersistentVolumeClaim: bound, or left unbound until a pod uses it, as storage classes with
/// `WaitForFirstConsumer` leave it. Nothing is provisioned for such a claim before.
pub fn claim(live: &Value) -> Verdict {
    let subject = subject("PersistentVolumeClaim", live);
    if let Some(verdict) = terminating(&subject, live) {
        return verdict;
    }
    let (spec, annotations) = (&live["spec"], &live["metadata"]["annotations"]);
    match live["status"]["phase"].as_str() {
        Some("Bound") => Verdict::Ready,
        Some("Lost") => {
            let message = format!("{subject} has lost its volume");
            waiting(Effect::Fail, Reason::WorkloadNotAvailable, message)
        }
        _ => {
            let is_provisioned = PROVISIONERS.iter().any(|it| annotations[*it].is_string());
            let has_volume = spec["volumeName"].as_str().is_some_and(|it| !it.is_empty());
            if !is_provisioned && !has_volume && spec["storageClassName"] != "" {
                return Verdict::Ready;
            }
            progressing(format!("{subject} is not bound to a volume yet"))
        }
    }
}

/// Judges an APIService: what answers for it is available.
pub fn api_service(live: &Value) -> Verdict {
    let subject = subject("APIService", live);
    if let Some(verdict) = terminating(&subject, live) {
        return verdict;
    }
    match parse::condition(live, "Available") {
        Some(available) if available.status == "True" => Verdict::Ready,
        Some(available) => {
            let because = because(available.reason, available.message);
            progressing(format!("{subject} is not available{because}"))
        }
        None => progressing(format!("{subject} has not been tried yet")),
    }
}

/// Judges a Certificate of cert-manager: issued, in its latest generation.
pub fn certificate(live: &Value) -> Verdict {
    let subject = subject("Certificate", live);
    if let Some(verdict) = terminating(&subject, live) {
        return verdict;
    }
    let Some(ready) = parse::condition(live, "Ready") else {
        return progressing(format!("{subject} has not been issued yet"));
    };
    if ready.status != "True" {
        let because = because(ready.reason, ready.message);
        return progressing(format!("{subject} is not ready{because}"));
    }
    let conditions = live["status"]["conditions"].as_array().into_iter().flatten();
    let mut observed = conditions.filter(|it| it["type"] == "Ready");
    let observed = observed.find_map(|it| it["observedGeneration"].as_i64());
    let generation = parse::number(live, &["metadata", "generation"]);
    match observed.zip(generation) {
        Some((observed, generation)) if observed < generation => progressing(format!(
            "{subject} has generation {generation}, of which its controller has seen {observed}"
        )),
        _ => Verdict::Ready,
    }
}

/// What keeps a Deployment from ever being rolled out, if anything.
fn deployment_trouble(subject: &str, live: &Value) -> Option<Verdict> {
    if let Some(verdict) = terminating(subject, live) {
        return Some(verdict);
    }
    let condition = |type_| parse::condition(live, type_);
    if let Some(failure) = condition("ReplicaFailure").filter(|failure| failure.status == "True") {
        let because = because(failure.reason, failure.message);
        let message = format!("{subject} cannot create its replicas{because}");
        return Some(waiting(Effect::Fail, Reason::WorkloadNotProgressing, message));
    }
    let stalled = condition("Progressing").filter(|progress| progress.status == "False")?;
    let because = because(stalled.reason, stalled.message);
    if let Some(unavailable) =
        condition("Available").filter(|available| available.status == "False")
    {
        let message = format!(
            "{subject} is not available ({}) and makes no progress{because}",
            either(unavailable.message, unavailable.reason),
        );
        return Some(waiting(Effect::Fail, Reason::WorkloadNotAvailable, message));
    }
    (stalled.reason == "ProgressDeadlineExceeded").then(|| {
        let message = format!("{subject} makes no progress{because}");
        waiting(Effect::Fail, Reason::WorkloadNotProgressing, message)
    })
}

/// The numbers of a rollout.
struct Counts {
    wanted: i64,
    updated: i64,
    available: i64,
    noun: &'static str,
}

impl Counts {
    /// `Waiting` with the first number that falls short, if any does.
    fn verdict(&self, subject: &str) -> Option<Verdict> {
        let Self { wanted, updated, available, noun } = self;
        if updated < wanted {
            Some(progressing(format!("{subject} has {updated} of {wanted} {noun} updated")))
        } else if available < wanted {
            Some(progressing(format!("{subject} has {available} of {wanted} {noun} available")))
        } else {
            None
        }
    }
}

/// Waits until the controller of the object has seen its latest generation.
pub(super) fn generation_not_observed(subject: &str, live: &Value) -> Option<Verdict> {
    let generation = parse::number(live, &["metadata", "generation"])?;
    let observed = parse::number(live, &["status", "observedGeneration"]).unwrap_or(0);
    (observed < generation).then(|| {
        progressing(format!(
            "{subject} has generation {generation}, of which its controller has seen {observed}"
        ))
    })
}

pub(super) fn terminating(subject: &str, live: &Value) -> Option<Verdict> {
    parse::is_terminating(live).then(|| {
        waiting(Effect::None, Reason::ObjectTerminating, format!("{subject} is being deleted"))
    })
}

fn updates_on_delete(live: &Value) -> bool {
    live["spec"]["updateStrategy"]["type"] == "OnDelete"
}

pub(super) fn subject(kind: &str, live: &Value) -> String {
    format!("{kind} \"{}\"", parse::namespaced_name(live))
}

fn status(live: &Value, field: &str) -> i64 {
    parse::number(live, &["status", field]).unwrap_or(0)
}

fn either<'a>(first: &'a str, second: &'a str) -> &'a str {
    if first.is_empty() { second } else { first }
}

/// `: REASON: MESSAGE`, as far as there is either.
pub(super) fn because(reason: &str, message: &str) -> String {
    [reason, message]
        .iter()
        .filter(|text| !text.is_empty())
        .map(|text| format!(": {text}"))
        .collect()
}

pub(super) fn progressing(message: String) -> Verdict {
    waiting(Effect::None, Reason::WorkloadProgressing, message)
}

pub(super) fn waiting(effect: Effect, reason: Reason, message: String) -> Verdict {
    Verdict::Waiting { effect, reason, message }
}

#[cfg(test)]
mod tests;
