//! Stand-ins: they play, against any API server, what nothing plays where there are no nodes.
//!
//! * Workloads become available: each Deployment, DaemonSet and StatefulSet reports that its
//!   present generation has rolled out, each Job that it is complete.
//! * For each ClusterOperator manifest of the releases an operator reports as a healthy one would,
//!   some time after its Deployments have rolled out (see [`StandInOptions::delay`]).
//! * What no manifest creates but somebody does at run time appears: namespaces, and kinds that
//!   neither the payload nor the server brings (as definitions that allow everything). That is the
//!   delay after the first Deployment of an operator has rolled out.
//!
//! Nobody polls: everything follows from watches. What to do is decided by `director`, which has
//! no client and no clock; this module watches and writes.
//!
//! # Caveats
//!
//! Where a real controller looks after a kind, say the Deployment controller of a complete
//! `kube-controller-manager`, the two disagree about its status. The stand-ins notice and leave
//! that object alone.

mod cast;
mod director;
mod faults;
mod look;
mod report;
mod stage;
mod surroundings;
mod watching;
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

pub use cast::Script;
pub use faults::{Fault, FaultError, Faults, ScriptedFault};

use cast::Cast;
use director::Director;
use stage::Stage;

/// What is played, and how.
#[derive(Clone)]
pub struct StandInOptions {
    /// The releases that the cluster may be at. Operators report the versions of the one that
    /// their live Deployments belong to.
    pub payloads: Vec<Arc<Payload>>,
    /// Releases of which there is no payload, but only what it has left in the cluster.
    pub scripts: Vec<Script>,
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

impl Default for StandInOptions {
    fn default() -> Self {
        Self {
            payloads: Vec::new(),
            scripts: Vec::new(),
            profile: inclusion::DEFAULT_PROFILE.to_owned(),
            feature_set: inclusion::DEFAULT_FEATURE_SET.to_owned(),
            delay: Duration::ZERO,
            faults: Faults::default(),
            clock: Arc::new(SystemClock),
        }
    }
}

impl fmt::Debug for StandInOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandInOptions")
            .field("payloads", &self.payloads.len())
            .field("scripts", &self.scripts.len())
            .field("profile", &self.profile)
            .field("feature_set", &self.feature_set)
            .field("delay", &self.delay)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

/// Plays until told to stop.
///
/// # Errors
///
/// When a fault names an operator or a release that is not there. What the API server refuses is
/// logged and tried again.
pub async fn run(
    client: Client,
    options: StandInOptions,
    stop: CancellationToken,
) -> Result<(), FaultError> {
    let mut scripts = options.scripts.clone();
    scripts.extend(options.payloads.iter().map(|it| script(it, &options)));
    let cast = Cast::new(&scripts);
    drop(scripts);
    let operators: BTreeSet<&str> = cast.operators.keys().map(String::as_str).collect();
    options.faults.check(&operators, &cast.releases)?;
    tracing::info!(
        operators = operators.len(),
        releases = cast.releases.join(", "),
        "simulating workloads and operators: nothing really runs"
    );
    let furniture = surroundings::Furniture {
        namespaces: cast.namespaces.clone(),
        foreign_kinds: cast.foreign_kinds.clone(),
    };
    let director = Director::new(cast, options.faults, options.delay);
    Stage::new(client, director, furniture, options.clock).play(&stop).await;
    Ok(())
}

/// The included manifests of a payload. Capabilities are not considered: what is not enabled does
/// not appear in the cluster, so nobody plays it.
fn script(payload: &Payload, options: &StandInOptions) -> Script {
    let context = payload.context(&options.profile, &options.feature_set);
    let included = |it: &&plimsoll_content::Manifest| {
        matches!(inclusion::decide(it, &context), Decision::Included)
    };
    Script {
        version: payload.release.version.clone(),
        manifests: payload.manifests.iter().filter(included).cloned().collect(),
        cluster_kinds: context.cluster_kinds,
    }
}

#[cfg(test)]
mod tests;
