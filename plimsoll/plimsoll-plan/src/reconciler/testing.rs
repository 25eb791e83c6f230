//! Payloads and clusters for the tests of this module.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use plimsoll_api::config::{CapabilitiesSpec, ClusterVersionSpec};
use plimsoll_content::capability::CapabilityRegistry;
use plimsoll_content::payload::ReleaseInfo;
use plimsoll_content::{Manifest, Payload};
use serde_json::json;

use super::Uptime;
use super::desired::{DesiredInputs, DesiredState};
use super::execution::{ExecutionEvent, Observation, PlanExecution};
use super::removals::Removals;
use crate::plan::GroupVersionKind;
use crate::plan::features::Features;
use crate::plan::mode::Mode;
use crate::progress::{Mark, NamespaceState, Scope, StepOutcome, Trace};

/// The cluster profile that manifests are included in.
pub(crate) const PROFILE: &str = "here";

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

pub(crate) fn names(list: &str) -> BTreeSet<String> {
    list.split_whitespace().map(str::to_owned).collect()
}

/// The pull specification of a version.
pub(crate) fn image(version: &str) -> String {
    format!("registry/release@sha256:{version}")
}

/// A ConfigMap `NAME[:CAPABILITY][@LEVEL]`, or a Job if the word ends with a `!`; the run level is 50 if there
/// is none.
fn manifest(word: &str) -> Manifest {
    let (word, api_version, kind) = match word.strip_suffix('!') {
        Some(word) => (word, "batch/v1", "Job"),
        None => (word, "v1", "ConfigMap"),
    };
    let (word, level) = word.split_once('@').unwrap_or((word, "50"));
    let (name, capability) = word.split_once(':').unwrap_or((word, ""));
    let mut annotations = json!({ format!("include.release.openshift.io/{PROFILE}"): "true" });
    if !capability.is_empty() {
        annotations["capability.openshift.io/name"] = capability.into();
    }
    let metadata = json!({ "name": name, "namespace": "x", "annotations": annotations });
    let object = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
    Manifest::read(format!("0000_{level}_a_{name}.yaml").into(), 0, &object).expect("a manifest")
}

/// A release of some ConfigMaps and Jobs.
pub(crate) fn payload(version: &str, words: &str) -> Arc<Payload> {
    let release = ReleaseInfo { version: version.to_owned(), ..ReleaseInfo::default() };
    Arc::new(Payload {
        release,
        manifests: words.split_whitespace().map(manifest).collect(),
        digest: String::new(),
        image: image(version),
        warnings: Vec::new(),
        capabilities: CapabilityRegistry::built_in(),
    })
}

/// A spec without a baseline of capabilities, with these.
pub(crate) fn requesting(capabilities: &str) -> ClusterVersionSpec {
    ClusterVersionSpec {
        capabilities: Some(CapabilitiesSpec {
            baseline_capability_set: "None".to_owned(),
            additional_enabled_capabilities: names(capabilities).into_iter().collect(),
        }),
        ..ClusterVersionSpec::default()
    }
}

/// A cluster that is to be brought to a release.
pub(crate) fn desired(
    payload: Arc<Payload>,
    spec: ClusterVersionSpec,
    enabled_before: &str,
) -> DesiredState {
    DesiredState::new(DesiredInputs {
        profile: PROFILE,
        always_enabled: &[],
        payload,
        spec,
        override_terms: None,
        features: Features::default(),
        enabled_before: &names(enabled_before),
        implied: Vec::new(),
        now: at(0),
    })
}

/// The plan of a cluster, with some of its steps applied.
pub(crate) fn execution(desired: &DesiredState, mode: Mode, applied: &str) -> PlanExecution {
    let kind = GroupVersionKind {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
    };
    let plan = Arc::new(desired.plan(mode));
    let served = [(kind, Scope::Namespaced)];
    let (mut execution, _) = PlanExecution::new(plan, served, Removals::default(), at(0));
    let state = Some(NamespaceState::Active);
    let namespace = Observation::Namespace { name: "x".to_owned(), state };
    execution.handle(ExecutionEvent::Observed(namespace), at(0), Uptime::default());
    for name in applied.split_whitespace() {
        apply(&mut execution, name);
    }
    execution
}

/// A step of the plan is applied.
pub(crate) fn apply(execution: &mut PlanExecution, name: &str) {
    let steps = &execution.progress().plan().steps;
    let step = steps.iter().position(|it| it.manifest.key.name == name).expect("a step");
    let outcome = StepOutcome::Applied(Mark::new(1, Trace::Ours(1)));
    execution.handle(ExecutionEvent::Executed(step, outcome), at(0), Uptime::default());
}
