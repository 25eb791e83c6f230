//! The wait until Operators are installed, and the limits of all waits.

mod undo;

use std::io::Write;
use std::pin::{Pin, pin};
use std::time::Duration;

use anyhow::{anyhow, bail};
use futures::{Stream, StreamExt as _};
use jiff::SignedDuration;
use kube::Client;
use kube::runtime::watcher;
use plimsoll_api::OPERATOR;
use plimsoll_operators::installation::{InstallationOutlook, InstallationState};
use plimsoll_operators::observed::ObservedOperator;
use plimsoll_resolve::printable::on_one_line;
use plimsoll_simulation::cluster_state::api;
use semver::Version;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use self::undo::undoing;
use super::watch::{ObjectChange, changes};
use crate::exit::{self, Refusal};
use crate::interruption::interrupted;

/// The timeout of a wait without `--timeout`. Zero is none, as for `kubectl delete` and `kubectl rollout status`.
pub(super) const TIMEOUT: &str = "10m";

/// The time without a change after which Operators at rest do not begin to move by themselves: meanwhile the
/// controller sees what others brought, and reads what is new in a catalog.
const REST_MAX: Duration = Duration::from_secs(60);

/// The limits of a wait: a time, and an interruption by the user.
pub(super) struct WaitLimits {
    timeout: Duration,
    /// The end of the time; `None` for no end.
    deadline: Option<Instant>,
    interrupted: Pin<Box<dyn Future<Output = ()>>>,
}

impl WaitLimits {
    /// Creates the limits of a wait that begins now; a timeout of zero is none.
    pub(super) fn new(timeout: Duration) -> Self {
        Self::with(timeout, interrupted())
    }

    fn with(timeout: Duration, interrupted: impl Future<Output = ()> + 'static) -> Self {
        let deadline = Instant::now().checked_add(timeout).filter(|_| !timeout.is_zero());
        Self { timeout, deadline, interrupted: Box::pin(interrupted) }
    }

    /// Awaits something within the limits. After an error nothing more is awaited.
    ///
    /// # Errors
    ///
    /// When a limit is reached before.
    pub(super) async fn during<F: Future>(
        &mut self,
        awaited: F,
    ) -> Result<F::Output, LimitReached> {
        tokio::select! {
            biased;
            output = awaited => Ok(output),
            () = &mut self.interrupted => Err(LimitReached::Interruption),
            () = passed(self.deadline) => Err(LimitReached::Timeout(self.timeout)),
        }
    }
}

/// Waits for a point in time, for ever if there is none.
async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The limit that ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitReached {
    /// The time has passed.
    Timeout(Duration),
    /// The user has interrupted the command.
    Interruption,
}

impl LimitReached {
    /// Returns the error that ends the command. `left` is what is not done yet, a line each, and `goes_on` a sentence
    /// about what continues without the command.
    pub(super) fn error(self, left: &str, goes_on: &str) -> anyhow::Error {
        match self {
            Self::Timeout(timeout) => {
                let timeout = SignedDuration::try_from(timeout).unwrap_or(SignedDuration::MAX);
                anyhow!("not done within {timeout:#}:\n{left}{goes_on}")
            }
            Self::Interruption => {
                let message = format!("not done yet:\n{left}{goes_on}");
                Refusal { message, exit: exit::INTERRUPTED }.into()
            }
        }
    }
}

/// An Operator that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InstallationTarget {
    /// The name of the Operator.
    pub(super) name: String,
    /// The version that it is to have.
    pub(super) version: Version,
    /// Whether the command has created it.
    pub(super) is_new: bool,
    /// The number of the revision that it leaves for a kept one; `None` if another version is requested.
    pub(super) returns_from: Option<u32>,
}

/// Waits until Operators are installed in the given versions, for ever if the timeout is zero.
///
/// # Errors
///
/// When an Operator is deleted in the meantime, one does not get to its version unless something is changed, the
/// timeout expires, or the user interrupts.
pub(super) async fn wait(
    client: &Client,
    targets: &[InstallationTarget],
    timeout: Duration,
    out: &mut dyn Write,
) -> Result<(), anyhow::Error> {
    let names = targets.iter().map(|it| it.name.clone()).collect();
    let changes = changes(api(client, OPERATOR), watcher::Config::default(), names);
    AwaitedOperators::new(targets).wait(changes, &mut WaitLimits::new(timeout), out).await
}

/// The Operators that are waited for.
struct AwaitedOperators<'t> {
    targets: &'t [InstallationTarget],
    /// What each of them reports, in the same order.
    states: Vec<InstallationState>,
    /// The version that each of them has, in the same order; empty for none, or before it is known.
    versions: Vec<String>,
    /// The number of Operators, from the first one on, that were printed as installed.
    printed: usize,
}

impl<'t> AwaitedOperators<'t> {
    fn new(targets: &'t [InstallationTarget]) -> Self {
        let states = vec![InstallationState::Unseen; targets.len()];
        let versions = vec![String::new(); targets.len()];
        Self { targets, states, versions, printed: 0 }
    }

    /// Waits until all are installed.
    async fn wait(
        mut self,
        changes: impl Stream<Item = ObjectChange>,
        limits: &mut WaitLimits,
        out: &mut dyn Write,
    ) -> Result<(), anyhow::Error> {
        let mut changes = pin!(changes);
        let mut changed = Instant::now();
        loop {
            let rested = match InstallationOutlook::of(&self.states) {
                InstallationOutlook::Complete => return Ok(()),
                InstallationOutlook::Stopped => return Err(self.stopped()),
                InstallationOutlook::UnderWay => None,
                InstallationOutlook::AtRest => Some(changed + REST_MAX),
            };
            let next = async {
                tokio::select! {
                    biased;
                    change = changes.next() => change,
                    () = passed(rested) => None,
                }
            };
            match limits.during(next).await {
                Ok(Some(change)) if self.observe(&change, out)? => changed = Instant::now(),
                Ok(Some(_)) => {}
                Ok(None) => return Err(self.stopped()),
                Err(limit) => {
                    let goes_on = "The controller goes on: `operator list` shows how far it is, \
                                   `operator describe NAME` why";
                    let undo = undoing(self.targets, &self.states, &self.versions);
                    let lines = [Some(goes_on.to_owned()), undo];
                    let lines: Vec<String> = lines.into_iter().flatten().collect();
                    return Err(limit.error(&self.left(), &lines.join("\n")));
                }
            }
        }
    }

    /// Records a change of an Operator, and prints it. Returns whether it is one that is waited for. What was
    /// installed once is not looked at any more.
    fn observe(
        &mut self,
        change: &ObjectChange,
        out: &mut dyn Write,
    ) -> Result<bool, anyhow::Error> {
        let name = &change.name;
        let Some(index) = self.targets.iter().position(|it| it.name == *name) else {
            return Ok(false);
        };
        if self.states[index] == InstallationState::Installed {
            return Ok(false);
        }
        let Some(object) = &change.object else {
            bail!("Operator `{name}` was deleted before it was installed");
        };
        let operator = ObservedOperator::read(&json!(object));
        operator.version().clone_into(&mut self.versions[index]);
        let state = InstallationState::of(&operator, &self.targets[index].version.to_string());
        if state == self.states[index] {
            return Ok(false);
        }
        if let InstallationState::UnderWay { message } | InstallationState::AtRest { message, .. } =
            &state
            && !message.is_empty()
        {
            writeln!(out, "{name}: {}", on_one_line(message))?;
        }
        self.states[index] = state;
        while self.states.get(self.printed) == Some(&InstallationState::Installed) {
            let InstallationTarget { name, version, .. } = &self.targets[self.printed];
            writeln!(out, "{name} v{version} installed")?;
            self.printed += 1;
        }
        out.flush()?;
        Ok(true)
    }

    /// Returns what is reported of each Operator that is not installed, a line each.
    fn left(&self) -> String {
        let mut text = String::new();
        for (target, state) in self.targets.iter().zip(&self.states) {
            let InstallationTarget { name, version, .. } = target;
            let report = match state {
                InstallationState::Installed => continue,
                InstallationState::Unseen => "the controller has not reported on it yet".to_owned(),
                InstallationState::UnderWay { message } => on_one_line(message),
                InstallationState::AtRest { reason, message } => {
                    format!("{} ({reason})", on_one_line(message))
                }
            };
            text.push_str(&format!("  {name} v{version}: {report}\n"));
        }
        text
    }

    /// Returns the error if nothing goes on by itself.
    fn stopped(&self) -> anyhow::Error {
        let message = format!(
            "nothing is in progress, and not everything is installed as planned:\n{}The controller goes on \
             once what it reports is resolved: `operator describe NAME` shows more",
            self.left()
        );
        Refusal { message, exit: exit::UNSATISFIABLE }.into()
    }
}

#[cfg(test)]
mod tests;
