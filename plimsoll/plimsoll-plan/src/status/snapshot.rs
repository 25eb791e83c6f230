//! Every condition that a status can hold, in one list: to review what people read is to review
//! one difference.

use std::collections::BTreeSet;

use plimsoll_api::{Effect, Reason, Verdict};
use serde_json::{Value, json};

use super::Updates;
use super::tests::{Situation, operator, release, render};
use crate::health::failure::{Failure, could_not_update, from_api_status};
use crate::health::gate;
use crate::health::readiness;
use crate::plan::GroupVersionKind;
use crate::plan::mode::Mode;
use crate::progress::StepBlocker;
use crate::update::acceptance::{LoadStatus, LoadStep};
use crate::update::preconditions::BrokenOperator;
use crate::update::upgradeable::{self, NotUpgradeable};

const OBJECT: &str = "deployment \"ns/x\"";

/// Shown in ReleaseProgress, events or not before other parts of the product use them.
const ELSEWHERE: &[Reason] = &[
    Reason::PrerequisitePending,
    Reason::StorageVersionMigrating,
    Reason::UpdatePayloadRetrievalFailed,
    Reason::LowDesiredVersion,
    Reason::InvalidCurrentVersion,
    Reason::InvalidDesiredVersion,
    Reason::MajorVersionUpdate,
    Reason::MultipleMinorVersionsUpdate,
    Reason::MinorVersionClusterUpdateInProgress,
    Reason::MajorVersionClusterUpdateInProgress,
    Reason::IncompatibleOperatorsUnknown,
    Reason::ResourceAlreadyDeleted,
    Reason::OtherProduct,
    Reason::UnknownUpdate,
    Reason::UpdateStarted,
    Reason::UpdateCompleted,
    Reason::UpdateResumed,
    Reason::FeaturesChanged,
    Reason::FailureResolved,
    Reason::ClusterVersionValid,
    Reason::MinorUpdatesBlocked,
    Reason::MinorUpdatesAllowed,
    Reason::UpdatesRetrieved,
    Reason::ClusterOperatorUpdated,
    Reason::DriftRepaired,
    Reason::CapabilityEnabled,
    Reason::LeaderElected,
    Reason::DefinitionNewer,
    Reason::OverrideInForce,
    Reason::OverrideExpired,
    Reason::OverrideRemoved,
    Reason::OverrideTermsInvalid,
    Reason::ResourceDeletionRequested,
    Reason::ResourceDeletionOngoing,
    Reason::ResourceDeletionCompleted,
    Reason::ResourceDeletionRefused,
    Reason::ResourceDeletionStuck,
    Reason::ResourceReappeared,
    Reason::CapabilityImplied,
    Reason::CapabilityNameRefused,
];

/// Shown in Operators.
const OF_OPERATORS: &[Reason] = &[
    Reason::InvalidVersionRange,
    Reason::PackageNotFound,
    Reason::CatalogNotFound,
    Reason::CatalogUnavailable,
    Reason::AmbiguousCatalog,
    Reason::ChannelNotFound,
    Reason::NoMatchingVersion,
    Reason::VersionSkipped,
    Reason::NoUpgradePath,
    Reason::ClusterIncompatible,
    Reason::UnmetDependency,
    Reason::ConstraintsUnmet,
    Reason::UpgradeBlocked,
    Reason::Conflict,
    Reason::InvalidSpec,
    Reason::InvalidChangeSet,
    Reason::ChangeSetIncomplete,
    Reason::ChangeSetBlocked,
    Reason::UnpackSuccessful,
    Reason::UnpackFailed,
    Reason::InstallationSucceeded,
    Reason::InstallationFailed,
    Reason::WorkloadReplaced,
    Reason::RollingOut,
    Reason::NotInstalled,
    Reason::Paused,
    Reason::Deleting,
    Reason::OperandsStuck,
    Reason::DefinitionDeleted,
    Reason::ContentUnknown,
    Reason::Deprecated,
];

/// Shown in Actions and what generates them.
const OF_ACTIONS: &[Reason] = &[
    Reason::OperatorNotFound,
    Reason::DependedUpon,
    Reason::WorkloadsRunning,
    Reason::OperatorDeleted,
    Reason::DependencyCreated,
    Reason::ActionClassNotFound,
    Reason::InvalidAction,
    Reason::PolicyDenied,
    Reason::PreconditionFailed,
    Reason::ActionCancelled,
    Reason::DeadlineExceeded,
    Reason::ApprovalRequired,
    Reason::PlanApproved,
    Reason::PlanRejected,
    Reason::PlanChanged,
    Reason::WaitingForAction,
    Reason::InventoryUnavailable,
    Reason::ActionRunning,
    Reason::ActionSucceeded,
    Reason::DryRun,
    Reason::BackoffLimitExceeded,
    Reason::Accepted,
    Reason::InvalidActionClass,
    Reason::InvalidActionPolicy,
    Reason::InvalidMaintenanceWindow,
    Reason::ActionDeleted,
    Reason::OutcomeUnknown,
    Reason::ScheduleMissed,
    Reason::StartingDeadlineExceeded,
    Reason::MaintenanceWindowsUnknown,
    Reason::ActionAlreadyActive,
    Reason::ClockSetBack,
    Reason::FilterFailed,
    Reason::EventActionCircle,
    Reason::RateLimited,
];

#[test]
fn every_condition_is_on_the_list() {
    insta::assert_snapshot!("every_condition", every_condition());
}

fn every_condition() -> String {
    let mut lines = BTreeSet::new();
    for situation in situations() {
        lines.extend(situation.status().conditions.iter().map(render));
    }
    let held = plimsoll_api::ObjectKey {
        group: String::new(),
        kind: "Namespace".to_owned(),
        namespace: String::new(),
        name: "held".to_owned(),
    };
    let old = BrokenOperator {
        name: "lamp".to_owned(),
        message: "Operator lamp 1.0.0: it runs on OpenShift 4.3 at most".to_owned(),
    };
    for (overrides, operators, deletions, incompatible) in [
        (false, 1, &[][..], &[][..]),
        (false, 2, &[], &[]),
        (true, 0, &[], &[]),
        (true, 2, &[], &[]),
        (false, 0, std::slice::from_ref(&held), &[]),
        (false, 0, &[], std::slice::from_ref(&old)),
    ] {
        let operators: Vec<NotUpgradeable> = ["a", "b"][..operators]
            .iter()
            .map(|name| NotUpgradeable {
                operator: (*name).to_owned(),
                reason: "OperatorsOwnReason".to_owned(),
                message: "What to do.".to_owned(),
            })
            .collect();
        for objection in upgradeable::conditions(
            overrides.then_some(""),
            overrides && !operators.is_empty(),
            &operators,
            None,
            deletions,
            incompatible,
        ) {
            let status = objection.status.as_str();
            let upgradeable::UpgradeableCondition { type_, reason, message, .. } = objection;
            lines.insert(format!("{type_}={status} {reason}: {message}"));
        }
    }
    let list: Vec<String> = lines.into_iter().map(|line| line.replace('\n', "\n    ")).collect();
    list.join("\n")
}

#[test]
fn every_reason_is_on_the_list_or_has_its_place_elsewhere() {
    let list = every_condition();
    let words: BTreeSet<&str> = list.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    for reason in Reason::ALL {
        let listed = words.contains(reason.as_str());
        let is_elsewhere =
            [ELSEWHERE, OF_OPERATORS, OF_ACTIONS].iter().any(|it| it.contains(reason));
        assert_ne!(listed, is_elsewhere, "{reason}");
    }
}

fn situations() -> Vec<Situation> {
    let down = |name: &str, minutes: i64| Failure {
        trouble: Some("is not available since 1970-01-02T00:00:00Z (Crashing)".to_owned()),
        ..operator(name, Reason::ClusterOperatorUpdating, Effect::None, minutes)
    };
    let mut situations = vec![
        Situation::failing(Mode::Updating, vec![down("a", 1)]),
        Situation::failing(Mode::Updating, vec![down("a", 1), down("b", 1)]),
        Situation::failing(Mode::Updating, vec![down("a", 60)]),
        Situation { release: release("1.2.3"), ..Situation::new(Mode::Initializing) },
        Situation { release: Default::default(), ..Situation::new(Mode::Initializing) },
        Situation { implicit: vec!["Console", "Insights"], ..Situation::new(Mode::Reconciling) },
    ];
    for mode in [Mode::Updating, Mode::Reconciling] {
        for invalid in [vec!["FIELD: WRONG"], vec!["FIELD: WRONG", "OTHER: WRONG"], vec![]] {
            let invalid = invalid.into_iter().map(str::to_owned).collect();
            situations.push(Situation { invalid, done: 5, ..Situation::new(mode) });
        }
        for failures in failures() {
            situations.push(Situation { done: 10, ..Situation::failing(mode, failures) });
        }
    }
    situations.extend(
        loads().map(|load| Situation { load: Some(load), ..Situation::new(Mode::Reconciling) }),
    );
    situations.extend(updates());
    situations
}

/// One for each thing that can be said of updates to come.
fn updates() -> Vec<Situation> {
    let situation = |mode, updates| Situation { updates, done: 5, ..Situation::new(mode) };
    let mut situations = vec![
        situation(Mode::Updating, Updates { paused_before: Some(40), ..Updates::default() }),
        situation(Mode::Reconciling, Updates { retrieved: Ok(()), ..Updates::default() }),
    ];
    for reason in [Reason::VersionNotFound, Reason::RemoteFailed] {
        let updates = Updates { retrieved: Err((reason, "WHY".to_owned())), ..Updates::default() };
        situations.push(situation(Mode::Reconciling, updates));
    }
    let acks = [
        Reason::AdminAckRequired,
        Reason::AdminAckConfigMapGateNameError,
        Reason::AdminAckConfigMapGateValueError,
        Reason::UnableToAccessAdminGatesConfigMap,
        Reason::UnableToAccessAdminAcksConfigMap,
    ];
    for reason in acks {
        let acknowledgement = Some((reason, "WHAT TO CONFIRM".to_owned()));
        let updates = Updates { acknowledgement, ..Updates::default() };
        situations.push(situation(Mode::Reconciling, updates));
    }
    situations
}

fn loads() -> impl Iterator<Item = LoadStatus> {
    let steps = [
        LoadStep::Retrieve,
        LoadStep::Load,
        LoadStep::VerifyVersion,
        LoadStep::Preconditions,
        LoadStep::Window,
        LoadStep::Loaded,
    ];
    let failures = |step: LoadStep| match step {
        LoadStep::Window => vec![Some("WHY".to_owned())],
        _ => vec![None, Some("WHY".to_owned())],
    };
    steps.into_iter().flat_map(move |step| {
        failures(step).into_iter().map(move |failure| LoadStatus {
            step,
            version: "1.2.4".to_owned(),
            image: "IMAGE".to_owned(),
            architecture: "amd64".to_owned(),
            failure,
        })
    })
}

/// One list of failures for each thing that can be said.
fn failures() -> Vec<Vec<Failure>> {
    let mut all: Vec<Vec<Failure>> = refusals().into_iter().map(|failure| vec![failure]).collect();
    all.extend(verdicts().into_iter().map(|failure| vec![failure]));
    let of = |reason, effect, minutes| {
        vec![operator("a", reason, effect, minutes), operator("b", reason, effect, minutes)]
    };
    let updating = Reason::ClusterOperatorUpdating;
    let degraded = Reason::ClusterOperatorDegraded;
    all.push(of(updating, Effect::None, 1));
    all.push(of(updating, Effect::None, 31));
    all.push(vec![
        operator("a", updating, Effect::None, 31),
        operator("machine-config", updating, Effect::None, 91),
    ]);
    all.push(of(degraded, Effect::FailAfterInterval, 1));
    all.push(of(degraded, Effect::FailAfterInterval, 41));
    all.push(of(degraded, Effect::Report, 1));
    all.push(of(Reason::ClusterOperatorNotAvailable, Effect::Fail, 1));
    let mut mixed = of(updating, Effect::None, 1);
    mixed.extend(of(degraded, Effect::FailAfterInterval, 1));
    all.push(mixed.clone());
    mixed.extend(refusals().into_iter().take(2));
    all.push(mixed);
    let mut slow = of(updating, Effect::None, 31).remove(0);
    slow.cluster_operators.clear();
    slow.objects = vec![OBJECT.to_owned()];
    slow.reason = Reason::WorkloadProgressing;
    all.push(vec![slow]);
    all
}

fn refusals() -> Vec<Failure> {
    let refusals = [
        (404, "NotFound", "pods \"x\" not found"),
        (404, "NotFound", "namespaces \"ns\" not found"),
        (404, "NotFound", "the server could not find the requested resource"),
        (409, "Conflict", "SAID"),
        (504, "Timeout", "SAID"),
        (500, "InternalError", "SAID"),
        (422, "Invalid", "SAID"),
        (401, "Unauthorized", "SAID"),
        (403, "Forbidden", "SAID"),
        (403, "Forbidden", "because it is being terminated"),
        (429, "TooManyRequests", "SAID"),
        (400, "BadRequest", "SAID"),
    ];
    let mut failures: Vec<Failure> = refusals
        .into_iter()
        .map(|(code, reason, said)| {
            let (reason, cause) = from_api_status(code, reason, said);
            let message = could_not_update(OBJECT, 3, 10, &cause);
            Failure::of_object(OBJECT, reason, Some(Effect::Fail), message)
        })
        .collect();
    for blocker in blockers() {
        let message = could_not_update(OBJECT, 3, 10, &blocker.message());
        let effect = Some(Effect::Fail);
        failures.push(Failure::of_object(OBJECT, blocker.reason(), effect, message));
    }
    for reason in [Reason::UpdatePayloadIntegrity, Reason::UpgradePreconditionCheckFailed] {
        failures.push(Failure::of_object(
            "the payload",
            reason,
            Some(Effect::Fail),
            "WHAT IS WRONG",
        ));
    }
    failures
}

fn blockers() -> [StepBlocker; 3] {
    [
        StepBlocker::KindNotServed(GroupVersionKind {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            kind: "Thing".to_owned(),
        }),
        StepBlocker::NamespaceMissing("ns".to_owned()),
        StepBlocker::NamespaceTerminating("ns".to_owned()),
    ]
}

/// What gates and readiness can say, by asking them.
fn verdicts() -> Vec<Failure> {
    let manifest = json!({
        "metadata": {"name": "a"},
        "status": {"versions": [{"name": "operator", "version": "1.2.3"}]},
    });
    let live = |available: &str, degraded: &str, version: &str| {
        json!({
            "metadata": {"name": "a"},
            "status": {
                "conditions": [
                    {"type": "Available", "status": available},
                    {"type": "Degraded", "status": degraded},
                ],
                "versions": [{"name": "operator", "version": version}],
            },
        })
    };
    let nameless = json!({"metadata": {"name": "a"}});
    let gates = [
        gate::cluster_operator(&nameless, None, Mode::Updating),
        gate::cluster_operator(&manifest, None, Mode::Updating),
        gate::cluster_operator(&manifest, Some(&live("True", "False", "1.2.2")), Mode::Updating),
        gate::cluster_operator(&manifest, Some(&live("False", "False", "1.2.2")), Mode::Updating),
        gate::cluster_operator(&manifest, Some(&live("True", "True", "1.2.2")), Mode::Updating),
        gate::cluster_operator(&manifest, Some(&live("False", "False", "1.2.3")), Mode::Updating),
        gate::cluster_operator(&manifest, Some(&live("True", "True", "1.2.3")), Mode::Updating),
        gate::cluster_operator(&manifest, Some(&live("True", "True", "1.2.3")), Mode::Initializing),
    ];
    let mut failures: Vec<Failure> = gates
        .into_iter()
        .map(|verdict| {
            let (effect, reason, message) = parts(verdict);
            Failure::of_cluster_operator("a", reason, Some(effect), message)
        })
        .collect();
    failures.extend(workloads().into_iter().map(|(group, kind, status)| {
        let terminating = status["terminating"].clone();
        let live = json!({
            "metadata": {
                "name": "x", "namespace": "ns", "generation": 2, "deletionTimestamp": terminating,
            },
            "status": status,
        });
        let verdict = readiness::workload(group, kind, &live).expect("the kind is awaited");
        let (effect, reason, message) = parts(verdict);
        let object = format!("{} \"ns/x\"", kind.to_lowercase());
        Failure::of_object(object, reason, Some(effect), message)
    }));
    failures
}

fn workloads() -> Vec<(&'static str, &'static str, Value)> {
    let condition = |type_: &str, status: &str| json!({"type": type_, "status": status, "reason": "WHY", "message": "WHAT"});
    let deadline = json!({"type": "Progressing", "status": "False",
                          "reason": "ProgressDeadlineExceeded", "message": "WHAT"});
    let with = |conditions: Value| json!({"observedGeneration": 2, "conditions": conditions});
    let (apps, extensions) = ("apps", "apiextensions.k8s.io");
    vec![
        (apps, "Deployment", json!({"terminating": "2026-01-01T00:00:00Z"})),
        (apps, "Deployment", json!({"observedGeneration": 1})),
        (apps, "Deployment", json!({"observedGeneration": 2})),
        (apps, "Deployment", json!({"observedGeneration": 2, "updatedReplicas": 1})),
        (
            apps,
            "Deployment",
            json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1,
                                    "availableReplicas": 1}),
        ),
        (apps, "Deployment", with(json!([condition("ReplicaFailure", "True")]))),
        (apps, "Deployment", with(json!([deadline]))),
        (apps, "Deployment", with(json!([deadline, condition("Available", "False")]))),
        (apps, "DaemonSet", json!({"observedGeneration": 2, "desiredNumberScheduled": 3})),
        (apps, "StatefulSet", json!({"observedGeneration": 2})),
        ("batch", "Job", json!({})),
        ("batch", "Job", json!({"active": 1})),
        ("batch", "Job", with(json!([condition("Failed", "True")]))),
        (extensions, "CustomResourceDefinition", json!({})),
        (
            extensions,
            "CustomResourceDefinition",
            with(json!([condition("NamesAccepted", "False")])),
        ),
    ]
}

fn parts(verdict: Verdict) -> (Effect, Reason, String) {
    match verdict {
        Verdict::Waiting { effect, reason, message } => (effect, reason, message),
        Verdict::ReadyWith { reason, message } => (Effect::Report, reason, message),
        Verdict::Ready => unreachable!("the list holds what is not ready"),
    }
}
