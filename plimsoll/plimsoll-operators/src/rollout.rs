//! Rollout of a revision: its objects as a plan, of the same kind as that of a release (OPR-28).
//!
//! Objects are applied phase by phase, those of a phase in parallel. A phase begins when everything in the
//! previous one is ready: definitions are served before roles refer to their kinds, and the webhooks of a new
//! version are registered when its workloads respond.

use std::collections::BTreeMap;

use plimsoll_api::GroupKind;
use plimsoll_api::config::Release;
use plimsoll_api::olm::BundleReference;
use plimsoll_content::Manifest;
use plimsoll_plan::plan::Plan;

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
    /// What exposes, monitors or scales workloads: routes, monitoring, consoles, autoscalers, API services.
    Publishing,
    /// Admission webhooks and policies.
    Admission,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Self; 11] = [
        Self::Namespaces,
        Self::Policies,
        Self::Identity,
        Self::Configuration,
        Self::Storage,
        Self::Definitions,
        Self::Access,
        Self::Services,
        Self::Workloads,
        Self::Publishing,
        Self::Admission,
    ];

    /// Returns the phase of objects of a kind.
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
            Self::Publishing => "Publishing",
            Self::Admission => "Admission",
        }
    }
}

/// Returns the plan that rolls out the objects of a revision, in any order. Within a phase, the order is
/// kept.
pub fn rollout(bundle: &BundleReference, objects: impl IntoIterator<Item = Manifest>) -> Plan {
    let mut phases: BTreeMap<Phase, Vec<Manifest>> = BTreeMap::new();
    for object in objects {
        phases.entry(Phase::of(&object.key.group_kind())).or_default().push(object);
    }
    let stages: Vec<Vec<Manifest>> = phases.into_values().collect();
    let release = Release {
        version: bundle.version.clone(),
        image: bundle.name.clone(),
        ..Release::default()
    };
    Plan::in_stages(&stages, release)
}

#[cfg(test)]
mod tests;
