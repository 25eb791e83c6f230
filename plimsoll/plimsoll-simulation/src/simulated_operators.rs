//! Simulated operators and workloads: they report, on any API server, what needs nodes otherwise.
//!
//! * Workloads become available: each Deployment, DaemonSet and StatefulSet reports that its
//!   present generation has rolled out, each Job that it is complete.
//! * For each ClusterOperator manifest of the releases an operator reports as a healthy one would,
//!   some time after its Deployments have rolled out (see [`SimulationOptions::delay`]).
//! * What no manifest creates but operators create at run time appears: namespaces, and kinds that
//!   neither the payload nor the server brings (as definitions that allow everything). That is the
//!   delay after the first Deployment of an operator has rolled out.
//! * Operators of bundles run, and reconcile the objects of their kinds (see `packages`).
//!
//! Nothing is polled: everything follows from watches. What to do is decided by `simulator` and
//! `packages`, which have no client and no clock; this module watches and writes.
//!
//! # Caveats
//!
//! Where a real controller reconciles a kind, say the Deployment controller of a complete
//! `kube-controller-manager`, the two disagree about its status. The simulation notices and writes
//! that object no more.

mod faults;
mod fixtures;
mod operator_status;
mod packages;
mod roles;
mod runner;
mod simulator;
mod template_fingerprint;
mod watches;
mod workload;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use plimsoll_content::Payload;
use plimsoll_content::inclusion::{self, Decision};
use plimsoll_controller::{SharedClock, SystemClock};
use tokio_util::sync::CancellationToken;

pub use faults::{Fault, FaultError, Faults, PackageFault, PackageFaultKind, ScriptedFault};
pub use roles::SimulatedRelease;

use packages::Packages;
use roles::Roles;
use runner::Runner;
use simulator::Simulator;

/// Field manager of everything that the simulation writes.
const MANAGER: &str = "plimsoll-simulation";

/// Which releases are simulated, and how.
#[derive(Clone)]
pub struct SimulationOptions {
    /// The releases that the cluster may be at. Operators report the versions of the one that
    /// their live Deployments belong to.
    pub payloads: Vec<Arc<Payload>>,
    /// Releases of which there is no payload, but only what it has left in the cluster.
    pub releases: Vec<SimulatedRelease>,
    /// Cluster profile in which the releases are taken.
    pub profile: String,
    /// Feature set in which the releases are taken.
    pub feature_set: String,
    /// How long an operator takes from the change of its Deployments to its report.
    pub delay: Duration,
    /// What goes wrong.
    pub faults: Faults,
    /// Where the times of conditions come from.
    pub clock: SharedClock,
}

impl Default for SimulationOptions {
    fn default() -> Self {
        Self {
            payloads: Vec::new(),
            releases: Vec::new(),
            profile: inclusion::DEFAULT_PROFILE.to_owned(),
            feature_set: inclusion::DEFAULT_FEATURE_SET.to_owned(),
            delay: Duration::ZERO,
            faults: Faults::default(),
            clock: Arc::new(SystemClock),
        }
    }
}

impl fmt::Debug for SimulationOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulationOptions")
            .field("payloads", &self.payloads.len())
            .field("releases", &self.releases.len())
            .field("profile", &self.profile)
            .field("feature_set", &self.feature_set)
            .field("delay", &self.delay)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

/// Simulates workloads and operators until `stop` is cancelled.
///
/// # Errors
///
/// When a fault names an operator or a release that is not there. What the API server refuses is
/// logged and tried again.
pub async fn run(
    client: Client,
    options: SimulationOptions,
    stop: CancellationToken,
) -> Result<(), FaultError> {
    let mut releases = options.releases.clone();
    releases.extend(options.payloads.iter().map(|it| simulated_release(it, &options)));
    let roles = Roles::new(&releases);
    drop(releases);
    let operators: BTreeSet<&str> = roles.operators.keys().map(String::as_str).collect();
    options.faults.check(&operators, &roles.releases)?;
    tracing::info!(
        operators = operators.len(),
        releases = roles.releases.join(", "),
        "simulating workloads and operators: nothing really runs"
    );
    let fixtures = fixtures::Fixtures {
        namespaces: roles.namespaces.clone(),
        external_kinds: roles.external_kinds.clone(),
    };
    let Faults { operators, packages } = options.faults;
    let simulator = Simulator::new(roles, operators, options.delay);
    let packages = Packages::new(packages, options.delay);
    Runner::new(client, simulator, packages, fixtures, options.clock).run(&stop).await;
    Ok(())
}

/// The included manifests of a payload. Capabilities are not considered: what is not enabled does
/// not appear in the cluster, so nothing of it is simulated.
fn simulated_release(payload: &Payload, options: &SimulationOptions) -> SimulatedRelease {
    let context = payload.context(&options.profile, &options.feature_set);
    let included = |it: &&plimsoll_content::Manifest| {
        matches!(inclusion::decide(it, &context), Decision::Included)
    };
    SimulatedRelease {
        version: payload.release.version.clone(),
        manifests: payload.manifests.iter().filter(included).cloned().collect(),
        cluster_kinds: context.cluster_kinds,
    }
}

#[cfg(test)]
mod tests;
