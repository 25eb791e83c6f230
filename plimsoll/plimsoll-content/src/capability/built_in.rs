//! The capabilities and sets of the published API, as data (CV-22).

use std::collections::BTreeSet;

use super::{CURRENT, Capability, CapabilityRegistry, CapabilitySet, NONE};

/// The sets, in order: each contains all before it.
const SETS: [&str; 10] =
    [NONE, "v4.11", "v4.12", "v4.13", "v4.14", "v4.15", "v4.16", "v4.17", "v4.18", CURRENT];

/// A capability of the API.
struct Known {
    name: &'static str,
    /// The first set that contains it.
    since: &'static str,
    requires: &'static [&'static str],
    gates: &'static [&'static str],
    description: &'static str,
}

const fn known(name: &'static str, since: &'static str, description: &'static str) -> Known {
    Known { name, since, requires: &[], gates: &[], description }
}

const MACHINE_MANAGEMENT: &str = "ClusterAPIMachineManagement";

/// Every capability of the API, in the order of the sets.
const KNOWN: [Known; 19] = [
    Known {
        requires: &["MachineAPI"],
        ..known("baremetal", "v4.11", "Provisions and manages bare metal hosts")
    },
    Known {
        requires: &["OperatorLifecycleManager"],
        ..known("marketplace", "v4.11", "Default catalogs of add-on operators")
    },
    known("openshift-samples", "v4.11", "Sample image streams and templates"),
    known("MachineAPI", "v4.11", "Machines and machine sets: nodes as objects"),
    known("Console", "v4.12", "The web console"),
    known("Insights", "v4.12", "Reports the cluster's health and configuration to its vendor"),
    known("Storage", "v4.12", "Storage drivers of the platform and default storage classes"),
    known("CSISnapshot", "v4.12", "Volume snapshots"),
    known("NodeTuning", "v4.13", "Tunes kernels and services of nodes by profiles"),
    known("Build", "v4.14", "Builds images in the cluster"),
    known("DeploymentConfig", "v4.14", "The DeploymentConfig API and its controllers"),
    known("ImageRegistry", "v4.14", "An image registry in the cluster"),
    known("OperatorLifecycleManager", "v4.15", "Installs and updates add-on operators"),
    known("CloudCredential", "v4.15", "Issues cloud credentials to components that ask for them"),
    known("Ingress", "v4.16", "Routes and the ingress controllers that serve them"),
    known("CloudControllerManager", "v4.16", "Connects nodes and load balancers to the cloud"),
    known("OperatorLifecycleManagerV1", "v4.18", "Installs add-ons as cluster extensions"),
    Known {
        gates: &["CRDCompatibilityRequirementOperator", MACHINE_MANAGEMENT],
        ..known(
            "CompatibilityRequirements",
            CURRENT,
            "Guards definitions of kinds against changes that others cannot bear",
        )
    },
    Known {
        requires: &["CompatibilityRequirements"],
        gates: &[MACHINE_MANAGEMENT],
        ..known("ClusterAPI", CURRENT, "Machines by Cluster API")
    },
];

pub(super) fn registry() -> CapabilityRegistry {
    let capabilities = KNOWN.iter().map(|known| {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let capability = Capability {
            name: known.name.to_owned(),
            description: known.description.to_owned(),
            requires: owned(known.requires),
            gates: owned(known.gates),
            declared: None,
        };
        (capability.name.clone(), capability)
    });
    let mut grown = BTreeSet::new();
    let sets = SETS.map(|set| {
        let new = KNOWN.iter().filter(|known| known.since == set);
        grown.extend(new.map(|known| known.name.to_owned()));
        CapabilitySet { name: set.to_owned(), capabilities: grown.clone(), declared: None }
    });
    CapabilityRegistry { capabilities: capabilities.collect(), sets: sets.into() }
}
