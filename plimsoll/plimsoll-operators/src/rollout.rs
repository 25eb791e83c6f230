//! The objects of a revision as a plan: the same kind of plan as that of a release (OPR-28).
//!
//! Objects are applied phase by phase, those of a phase side by side. A phase begins when everything in
//! the one before it is ready: definitions are served before roles name their kinds, and the webhooks of
//! a new version come when its workloads answer.

use std::collections::BTreeMap;

use plimsoll_api::GroupKind;
use plimsoll_api::config::Release;
use plimsoll_api::olm::BundleReference;
use plimsoll_content::Manifest;
use plimsoll_plan::plan::Plan;

/// When an object of a bundle is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Namespaces.
    Namespaces,
    /// What limits pods and their traffic, and says how important they are.
    Policies,
    /// Service accounts.
    Identity,
    /// ConfigMaps and Secrets.
    Configuration,
    /// Volumes and classes of them.
    Storage,
    /// CustomResourceDefinitions.
    Definitions,
    /// Roles and their bindings.
    Access,
    /// Services, and certificates for them.
    Services,
    /// What runs, and kinds that are not known.
    Workloads,
    /// What shows or watches what runs: routes, monitoring, consoles, API services.
    Publishing,
    /// Admission webhooks and policies.
    Admission,
}

impl Phase {
    /// All phases in their order.
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

    /// The phase of objects of a kind.
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

    /// The phase as objects spell it.
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

/// The plan that rolls out the objects of a revision, whatever their order. Within a phase they keep it.
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
