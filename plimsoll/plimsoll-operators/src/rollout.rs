//! Rollout of a revision: its objects as a plan, of the same kind as that of a release (OPR-28).
//!
//! Objects are applied phase by phase, those of a phase in parallel. A phase begins when everything in the
//! previous one is ready: definitions are served before roles refer to their kinds, and the webhooks of a new
//! version are registered when its workloads respond.
//!
//! The same is true for conversion webhooks. A new definition is applied without its webhook first, and with it
//! once the workloads are ready. One that gets a webhook, and other versions with it, stays as it is until then.
//!
//! After all else, the objects of definitions with several versions are rewritten if they may be stored in
//! another than the storage version, so that a later bundle can drop that version.

pub(crate) mod conversion;

use std::collections::BTreeMap;

use plimsoll_api::config::Release;
use plimsoll_api::olm::BundleReference;
use plimsoll_api::{GroupKind, ObjectKey};
use plimsoll_content::Manifest;
use plimsoll_plan::plan::{GroupVersionKind, Plan};

/// The phase in which an object of a bundle is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Namespaces.
    Namespaces,
    /// Policies and quotas for pods and their traffic, and priority classes.
    Policies,
    /// Service accounts.
    Identity,
    /// ConfigMaps and Secrets.
    Configuration,
    /// Volumes and storage classes.
    Storage,
    /// CustomResourceDefinitions.
    Definitions,
    /// Roles and their bindings.
    Access,
    /// Services, and certificates for them.
    Services,
    /// Workloads, and objects of unknown kinds.
    Workloads,
    /// CustomResourceDefinitions once more, with the conversion webhooks that workloads answer.
    Conversions,
    /// What exposes, monitors or scales workloads: routes, monitoring, consoles, autoscalers, API services.
    Publishing,
    /// Admission webhooks and policies.
    Admission,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Self; 12] = [
        Self::Namespaces,
        Self::Policies,
        Self::Identity,
        Self::Configuration,
        Self::Storage,
        Self::Definitions,
        Self::Access,
        Self::Services,
        Self::Workloads,
        Self::Conversions,
        Self::Publishing,
        Self::Admission,
    ];

    /// Returns the phase of objects of a kind. A definition with a conversion webhook may have
    /// [`Self::Conversions`] as well, or instead; a PersistentVolumeClaim has [`Self::Publishing`] as well.
    pub fn of(kind: &GroupKind) -> Self {
        match (kind.group.as_str(), kind.kind.as_str()) {
            ("", "Namespace") => Self::Namespaces,
            ("networking.k8s.io", "NetworkPolicy")
            | ("policy", "PodDisruptionBudget")
            | ("scheduling.k8s.io", "PriorityClass")
            | ("", "ResourceQuota" | "LimitRange") => Self::Policies,
            ("", "ServiceAccount") => Self::Identity,
            ("", "ConfigMap" | "Secret") => Self::Configuration,
            ("", "PersistentVolume" | "PersistentVolumeClaim")
            | ("storage.k8s.io", "StorageClass") => Self::Storage,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => Self::Definitions,
            ("rbac.authorization.k8s.io", _) => Self::Access,
            ("", "Service") | ("cert-manager.io", "Issuer" | "ClusterIssuer" | "Certificate") => {
                Self::Services
            }
            ("networking.k8s.io", "Ingress")
            | ("route.openshift.io", "Route")
            | ("monitoring.coreos.com" | "console.openshift.io", _)
            | ("autoscaling.k8s.io", "VerticalPodAutoscaler")
            | ("autoscaling", "HorizontalPodAutoscaler")
            | ("apiregistration.k8s.io", "APIService") => Self::Publishing,
            ("admissionregistration.k8s.io", _) => Self::Admission,
            _ => Self::Workloads,
        }
    }

    /// Returns the name of the phase in OperatorRevisions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespaces => "Namespaces",
            Self::Policies => "Policies",
            Self::Identity => "Identity",
            Self::Configuration => "Configuration",
            Self::Storage => "Storage",
            Self::Definitions => "Definitions",
            Self::Access => "Access",
            Self::Services => "Services",
            Self::Workloads => "Workloads",
            Self::Conversions => "Conversions",
            Self::Publishing => "Publishing",
            Self::Admission => "Admission",
        }
    }
}

/// The phases in which PersistentVolumeClaims are applied. Pods that use them may have to exist before they are
/// bound, so that they are awaited after the workloads.
const CLAIM_PHASES: &[Phase] = &[Phase::Storage, Phase::Publishing];

fn is_claim(key: &ObjectKey) -> bool {
    key.group.is_empty() && key.kind == "PersistentVolumeClaim"
}

/// Returns the plan that rolls out the objects of a revision, in any order. Within a phase, the order is
/// kept. `live` has the definitions as they are in the cluster, whoever applied them.
pub fn rollout<'a>(
    bundle: &BundleReference,
    objects: impl IntoIterator<Item = Manifest>,
    live: impl IntoIterator<Item = &'a Manifest>,
) -> Plan {
    let live = live.into_iter().filter(|it| it.definition.is_some());
    let live: BTreeMap<&ObjectKey, &Manifest> = live.map(|it| (&it.key, it)).collect();
    let objects: Vec<Manifest> = objects.into_iter().collect();
    let late = conversion::late_kinds(&objects, &live);
    let is_late = |it: &Manifest| {
        late.contains(&GroupVersionKind {
            group: it.key.group.clone(),
            version: it.version.clone(),
            kind: it.key.kind.clone(),
        })
    };
    let mut phases: BTreeMap<Phase, Vec<Manifest>> = BTreeMap::new();
    let mut migrated: Vec<Manifest> = Vec::new();
    for object in objects {
        if object.definition.as_ref().is_some_and(|it| it.versions.len() > 1) {
            migrated.push(object.clone());
        }
        let own = match is_claim(&object.key) {
            true => CLAIM_PHASES,
            false => conversion::phases(&object, live.get(&object.key).copied()),
        };
        for phase in own {
            phases.entry(*phase).or_default().push(object.clone());
        }
        if own.is_empty() {
            let phase = match is_late(&object) {
                true => Phase::Publishing,
                false => Phase::of(&object.key.group_kind()),
            };
            phases.entry(phase).or_default().push(object);
        }
    }
    let stages: Vec<Vec<Manifest>> = phases.into_values().collect();
    let release = Release {
        version: bundle.version.clone(),
        image: bundle.name.clone(),
        ..Release::default()
    };
    Plan::in_stages(&stages, release).then_migrating(migrated)
}

#[cfg(test)]
mod tests;
