//! The capabilities and capability sets that the API knows (cluster-version §5.1), as data.
//!
//! Names are case-sensitive and spelled as users write them today, consistent or not.

/// Annotation: the capabilities that a manifest belongs to, separated by `+` (design 000).
pub const ANNOTATION: &str = "capability.openshift.io/name";

/// A capability of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capability {
    /// Its name.
    pub name: &'static str,
    /// Feature gates of which one must be enabled for the capability to exist at all; empty for
    /// a capability that always does.
    pub gates: &'static [&'static str],
    /// The first set that contains it; every later one does too.
    pub since: Set,
}

/// A capability set of the API. Sets only grow: each contains the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Set {
    /// Nothing.
    None,
    /// `v4.11`.
    V4_11,
    /// `v4.12`.
    V4_12,
    /// `v4.13`.
    V4_13,
    /// `v4.14`.
    V4_14,
    /// `v4.15`.
    V4_15,
    /// `v4.16`.
    V4_16,
    /// `v4.17`, equal to `v4.16`.
    V4_17,
    /// `v4.18`.
    V4_18,
    /// `vCurrent`: everything known.
    Current,
}

/// Every set, in order of growth.
pub const SETS: [Set; 10] = [
    Set::None,
    Set::V4_11,
    Set::V4_12,
    Set::V4_13,
    Set::V4_14,
    Set::V4_15,
    Set::V4_16,
    Set::V4_17,
    Set::V4_18,
    Set::Current,
];

impl Set {
    /// How the API spells the set.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::V4_11 => "v4.11",
            Self::V4_12 => "v4.12",
            Self::V4_13 => "v4.13",
            Self::V4_14 => "v4.14",
            Self::V4_15 => "v4.15",
            Self::V4_16 => "v4.16",
            Self::V4_17 => "v4.17",
            Self::V4_18 => "v4.18",
            Self::Current => "vCurrent",
        }
    }

    /// The set of that name.
    pub fn named(name: &str) -> Option<Self> {
        SETS.into_iter().find(|set| set.name() == name)
    }

    /// The names of its capabilities, in the order of [`KNOWN`]; gates are not considered.
    pub fn capabilities(self) -> impl Iterator<Item = &'static str> {
        KNOWN.iter().filter(move |known| known.since <= self).map(|known| known.name)
    }
}

const ALWAYS: &[&str] = &[];
const MACHINE_MANAGEMENT: &str = "ClusterAPIMachineManagement";

/// Every capability that the API knows.
pub const KNOWN: &[Capability] = &[
    Capability { name: "baremetal", gates: ALWAYS, since: Set::V4_11 },
    Capability { name: "marketplace", gates: ALWAYS, since: Set::V4_11 },
    Capability { name: "openshift-samples", gates: ALWAYS, since: Set::V4_11 },
    Capability { name: "MachineAPI", gates: ALWAYS, since: Set::V4_11 },
    Capability { name: "Console", gates: ALWAYS, since: Set::V4_12 },
    Capability { name: "Insights", gates: ALWAYS, since: Set::V4_12 },
    Capability { name: "Storage", gates: ALWAYS, since: Set::V4_12 },
    Capability { name: "CSISnapshot", gates: ALWAYS, since: Set::V4_12 },
    Capability { name: "NodeTuning", gates: ALWAYS, since: Set::V4_13 },
    Capability { name: "Build", gates: ALWAYS, since: Set::V4_14 },
    Capability { name: "DeploymentConfig", gates: ALWAYS, since: Set::V4_14 },
    Capability { name: "ImageRegistry", gates: ALWAYS, since: Set::V4_14 },
    Capability { name: "OperatorLifecycleManager", gates: ALWAYS, since: Set::V4_15 },
    Capability { name: "CloudCredential", gates: ALWAYS, since: Set::V4_15 },
    Capability { name: "Ingress", gates: ALWAYS, since: Set::V4_16 },
    Capability { name: "CloudControllerManager", gates: ALWAYS, since: Set::V4_16 },
    Capability { name: "OperatorLifecycleManagerV1", gates: ALWAYS, since: Set::V4_18 },
    Capability {
        name: "CompatibilityRequirements",
        gates: &["CRDCompatibilityRequirementOperator", MACHINE_MANAGEMENT],
        since: Set::Current,
    },
    Capability { name: "ClusterAPI", gates: &[MACHINE_MANAGEMENT], since: Set::Current },
];

/// Whether the API knows a capability of that name.
pub fn is_known(name: &str) -> bool {
    KNOWN.iter().any(|known| known.name == name)
}

#[cfg(test)]
mod tests {
    //! The sets hold what the specification lists.

    use super::{KNOWN, SETS, Set, is_known};

    #[test]
    fn sets_grow_by_the_documented_numbers() {
        let sizes: Vec<usize> = SETS.into_iter().map(|set| set.capabilities().count()).collect();
        assert_eq!(sizes, [0, 4, 8, 9, 12, 14, 16, 16, 17, 19]);
        assert_eq!(Set::Current.capabilities().count(), KNOWN.len());
    }

    #[test]
    fn names_are_case_sensitive() {
        assert!(is_known("Console") && !is_known("console"));
        assert_eq!(Set::named("v4.14"), Some(Set::V4_14));
        assert_eq!(Set::named("v4.19"), None);
    }
}
