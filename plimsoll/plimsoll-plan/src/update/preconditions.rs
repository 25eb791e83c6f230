//! Whether a cluster may go from where it is to another release (CV-27, CO-10).
//!
//! A patch update begins whatever the cluster says of itself; a minor or major one only while
//! nothing says `Upgradeable=False`; going back leads only to the release before and not to another
//! minor version; no update skips a minor version; none begins while the MaintenanceWindow of the cluster is
//! closed. Another minor version drops the manifests that
//! delete what the one before has deleted (DEL-8). What blocks can be forced, and is then
//! recorded as a risk that was accepted. All checks are made and reported together.
//!
//! # Departures from upstream
//!
//! * An update that a release declares may skip versions: OpenShift's graph has none such, and other
//!   platforms number their releases as they like.
//! * One that is declared may begin during another one, which it may repair.

use jiff::Timestamp;
use plimsoll_api::config::{Release, UpdateHistory, UpdateState};
use plimsoll_api::progress::Deletion;
use plimsoll_api::{Condition, ConditionStatus, Reason};
use plimsoll_content::payload::ReleaseInfo;
use semver::Version;

use crate::windows::{ClosedWindow, MaintenanceWindows};

/// Annotation of the ClusterVersion: the name of the MaintenanceWindow that updates begin in.
pub const WINDOW_ANNOTATION: &str = "plimsoll.io/maintenance-window";

/// The one step from one major version to the next that is a single hop: from the last minor
/// versions of 4 to 5.0.
const MAJOR_HOP: (u64, u64) = (4, 5);

/// An installed Operator that an update of the platform would break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenOperator {
    /// Its name.
    pub name: String,
    /// Why, as a sentence without a stop.
    pub message: String,
}

/// What is known when a release is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The release that the cluster is at or on its way to.
    pub current: &'a Release,
    /// The releases it had, newest first.
    pub history: &'a [UpdateHistory],
    /// `Upgradeable`, if something objects.
    pub objection: Option<&'a Objecting<'a>>,
    /// Whether an override leaves an object unmanaged.
    pub overrides_set: bool,
    /// What is gone and the release asked for would delete once more
    /// ([`crate::removal::DeletionTracker::repeated`]).
    pub repeated: &'a [Deletion],
    /// The installed Operators that require what the release asked for removes; why they cannot be
    /// listed, if they cannot.
    pub broken: Result<&'a [BrokenOperator], &'a str>,
    /// Why the release asked for is of another product; `None` if it is not.
    pub other_product: Option<&'a str>,
    /// What the payload store offers from here; `None` if there is no store.
    pub available: Option<&'a [Release]>,
    /// `RetrievedUpdates`.
    pub retrieved: Option<&'a Condition>,
    /// Whether the release asked for is declared as an update ([`is_declared`]).
    pub is_declared: bool,
    /// The MaintenanceWindow that updates begin in; `None` for any time.
    pub window: Option<UpdateWindow<'a>>,
}

impl<'a> Facts<'a> {
    /// Returns the facts of a cluster at a release of which nothing else is known.
    pub fn of(current: &'a Release) -> Self {
        Self {
            current,
            history: &[],
            objection: None,
            overrides_set: false,
            repeated: &[],
            broken: Ok(&[]),
            other_product: None,
            available: None,
            retrieved: None,
            is_declared: false,
            window: None,
        }
    }
}

/// The MaintenanceWindow that the updates of a cluster begin in.
#[derive(Debug, Clone, Copy)]
pub struct UpdateWindow<'a> {
    /// The name of the MaintenanceWindow.
    pub name: &'a str,
    /// The MaintenanceWindows of the cluster.
    pub windows: &'a MaintenanceWindows,
    /// The time at which an update would begin.
    pub now: Timestamp,
}

impl<'a> UpdateWindow<'a> {
    /// Returns the MaintenanceWindow of a name; `None` if it is empty.
    pub fn of(name: &'a str, windows: &'a MaintenanceWindows, now: Timestamp) -> Option<Self> {
        (!name.is_empty()).then_some(Self { name, windows, now })
    }
}

/// The `Upgradeable=False` condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Objecting<'a> {
    /// Its reason.
    pub reason: &'a str,
    /// Its message.
    pub message: &'a str,
}

/// A precondition that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedPrecondition {
    /// Name of the precondition.
    pub precondition: &'static str,
    /// Why; an operator's own word in some cases.
    pub reason: String,
    /// The same as a sentence.
    pub message: String,
    /// Whether the update may not begin, unless forced.
    pub blocking: bool,
}

/// What all checks together say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreconditionVerdict {
    /// It may begin; with the risks that are accepted by that, empty for none.
    Accepted(String),
    /// It may not; with everything that was found.
    Rejected(String),
}

const ROLLBACK: &str = "ClusterVersionRollback";
pub(crate) const GIANT_HOP: &str = "ClusterVersionGiantHop";
const UPGRADEABLE: &str = "ClusterVersionUpgradeable";
const REPEATED_DELETIONS: &str = "ClusterVersionRepeatedDeletions";
const INCOMPATIBLE_OPERATORS: &str = "ClusterVersionIncompatibleOperators";
const OTHER_PRODUCT: &str = "ClusterVersionOtherProduct";
const MAINTENANCE_WINDOW: &str = "ClusterVersionMaintenanceWindow";
const RECOMMENDED: &str = "ClusterVersionRecommendedUpdate";

/// Makes all checks for going to `target`.
pub fn check(facts: &Facts<'_>, target: &Release) -> Vec<FailedPrecondition> {
    let mut findings = Vec::new();
    match (Version::parse(&facts.current.version), Version::parse(&target.version)) {
        (_, Err(error)) => findings.push(FailedPrecondition {
            precondition: ROLLBACK,
            reason: Reason::InvalidDesiredVersion.to_string(),
            message: format!("{:?} is not a semantic version: {error}", target.version),
            blocking: true,
        }),
        (Err(error), _) => findings.push(FailedPrecondition {
            precondition: ROLLBACK,
            reason: Reason::InvalidCurrentVersion.to_string(),
            message: format!("{:?} is not a semantic version: {error}", facts.current.version),
            blocking: false,
        }),
        (Ok(current), Ok(next)) => {
            findings.extend(rollback(facts, &next));
            if !facts.is_declared && !is_listed(facts.available.unwrap_or_default(), target) {
                findings.extend(giant_hop(&current, &next));
            }
            findings.extend(upgradeable(facts, &current, &next));
            findings.extend(repeated_deletions(facts, &current, &next));
            findings.extend(incompatible_operators(facts));
        }
    }
    findings.extend(facts.other_product.map(of_other_product));
    findings.extend(facts.window.and_then(maintenance_window));
    findings.extend(recommended(facts, target));
    findings
}

/// Judges what was found.
pub fn judge(findings: &[FailedPrecondition], force: bool) -> PreconditionVerdict {
    let reported = |finding: &FailedPrecondition| {
        let FailedPrecondition { precondition, reason, message, .. } = finding;
        format!("Precondition {precondition:?} failed because of {reason:?}: {message}")
    };
    let text = match findings {
        [] => String::new(),
        [only] => reported(only),
        several => several
            .iter()
            .fold("Multiple precondition checks failed:".to_owned(), |text, finding| {
                format!("{text}\n* {}", reported(finding))
            }),
    };
    match (findings.iter().any(|finding| finding.blocking), force) {
        (false, _) => PreconditionVerdict::Accepted(text),
        (true, true) => {
            PreconditionVerdict::Accepted(format!("Forced through blocking failures: {text}"))
        }
        (true, false) => PreconditionVerdict::Rejected(text),
    }
}

/// Returns whether nothing but a MaintenanceWindow is in the way, and that opens by itself.
pub fn waits_for_window(facts: &Facts<'_>, findings: &[FailedPrecondition]) -> bool {
    let opens = facts.window.and_then(|it| it.windows.opens_at(it.name, it.now));
    let mut blocking = findings.iter().filter(|it| it.blocking);
    opens.is_some() && blocking.all(|it| it.precondition == MAINTENANCE_WINDOW)
}

fn rollback(facts: &Facts<'_>, target: &Version) -> Option<FailedPrecondition> {
    lower_version(facts.current, facts.history, target).map(low_version)
}

/// The precondition that a lower version does not meet.
pub fn low_version(message: String) -> FailedPrecondition {
    let reason = Reason::LowDesiredVersion.to_string();
    FailedPrecondition { precondition: ROLLBACK, reason, message, blocking: true }
}

/// Why a cluster of this history may not go back from a release to a lower version; `None` if the
/// version is not lower, or is one that it may go back to.
pub fn lower_version(
    release: &Release,
    history: &[UpdateHistory],
    target: &Version,
) -> Option<String> {
    let current = &Version::parse(&release.version).ok()?;
    if target >= current {
        return None;
    }
    let start = format!("{target} is less than the current target {current}");
    Some(match previous(release, history) {
        Some(previous) if Version::parse(&previous.version).ok().as_ref() != Some(target) => {
            format!(
                "{start}, and the only supported rollback is to the cluster's previous version {} ({})",
                previous.version, previous.image
            )
        }
        Some(_) if minor(target) == minor(current) => return None,
        Some(_) => format!(
            "{start} and matches the cluster's previous version, but rollbacks that change major \
             or minor versions are not recommended"
        ),
        None => format!("{start}, and the cluster has no previous version to go back to"),
    })
}

/// The newest release of the history that is another than the current one.
fn previous<'a>(current: &Release, history: &'a [UpdateHistory]) -> Option<&'a UpdateHistory> {
    history.iter().find(|entry| entry.version != current.version || entry.image != current.image)
}

fn giant_hop(current: &Version, target: &Version) -> Option<FailedPrecondition> {
    let single = (current.major, target.major) == MAJOR_HOP && target.minor == 0;
    let (reason, what) = if target.major > current.major && !single {
        (Reason::MajorVersionUpdate, "major")
    } else if target.major == current.major && target.minor > current.minor + 1 {
        (Reason::MultipleMinorVersionsUpdate, "minor")
    } else {
        return None;
    };
    let limit = match what {
        "major" => "to another major version".to_owned(),
        _ => format!("beyond {}.{}", current.major, current.minor + 1),
    };
    Some(FailedPrecondition {
        precondition: GIANT_HOP,
        reason: reason.to_string(),
        message: format!(
            "{target} is too far from the current target {current}: an update does not lead {limit}"
        ),
        blocking: true,
    })
}

/// Only minor and major updates are held up; patches get warnings.
fn upgradeable(facts: &Facts<'_>, current: &Version, target: &Version) -> Vec<FailedPrecondition> {
    let Some(objecting) = facts.objection else {
        let is_fix = facts.is_declared;
        return retargeted(facts, current, target).filter(|_| is_fix).into_iter().collect();
    };
    if is_to_another_minor(current, target) {
        return vec![FailedPrecondition {
            precondition: UPGRADEABLE,
            reason: objecting.reason.to_owned(),
            message: objecting.message.to_owned(),
            blocking: true,
        }];
    }
    let mut findings = Vec::new();
    let warning = |reason: Reason, message: String| FailedPrecondition {
        precondition: UPGRADEABLE,
        reason: reason.to_string(),
        message,
        blocking: false,
    };
    if facts.overrides_set {
        let message = "Disabling ownership via cluster version overrides leaves the objects named \
                       there as they are";
        findings.push(warning(Reason::ClusterVersionOverridesSet, message.to_owned()));
    }
    findings.extend(retargeted(facts, current, target));
    findings
}

/// The risk of leaving an update to another minor version before it is completed.
fn retargeted(
    facts: &Facts<'_>,
    current: &Version,
    target: &Version,
) -> Option<FailedPrecondition> {
    let from = Version::parse(under_way(facts.history)?).ok()?;
    if minor(&from) == minor(current) {
        return None;
    }
    let (reason, what) = if from.major == current.major {
        (Reason::MinorVersionClusterUpdateInProgress, "minor")
    } else {
        (Reason::MajorVersionClusterUpdateInProgress, "major")
    };
    Some(FailedPrecondition {
        precondition: UPGRADEABLE,
        reason: reason.to_string(),
        message: format!(
            "Retarget to {target} while a {what} version update from {from} to {current} is in \
             progress"
        ),
        blocking: false,
    })
}

/// A patch may go on deleting what is gone; another minor version is to have dropped that (design
/// 001, update strategy).
fn repeated_deletions(
    facts: &Facts<'_>,
    current: &Version,
    target: &Version,
) -> Option<FailedPrecondition> {
    if facts.repeated.is_empty() || !is_to_another_minor(current, target) {
        return None;
    }
    let gone = facts.repeated.iter().map(|it| format!("{} (by {})", it.object, it.version));
    let gone: Vec<String> = gone.collect();
    Some(FailedPrecondition {
        precondition: REPEATED_DELETIONS,
        reason: Reason::ResourceAlreadyDeleted.to_string(),
        message: format!(
            "{target} deletes what has been deleted already: {}; patch releases may do so, another \
             minor version is to have dropped these manifests. Go to a release without them, or \
             force this one, which deletes them again if they have come back",
            gone.join(", ")
        ),
        blocking: true,
    })
}

/// Patches too are not to break what is installed.
fn incompatible_operators(facts: &Facts<'_>) -> Option<FailedPrecondition> {
    let (reason, message) = match facts.broken {
        Ok([]) => return None,
        Ok(broken) => {
            let messages: Vec<&str> = broken.iter().map(|it| it.message.as_str()).collect();
            let message = format!(
                "Installed Operators would be broken; update or delete them first. {}",
                messages.join("; ")
            );
            (Reason::IncompatibleOperatorsInstalled, message)
        }
        Err(why) => {
            let message = format!(
                "What installed Operators require of the platform is unknown: {why}; grant get, list \
                 and watch on operators.olm.io"
            );
            (Reason::IncompatibleOperatorsUnknown, message)
        }
    };
    Some(FailedPrecondition {
        precondition: INCOMPATIBLE_OPERATORS,
        reason: reason.to_string(),
        message,
        blocking: true,
    })
}

/// The precondition that a release of another product does not meet.
fn of_other_product(message: &str) -> FailedPrecondition {
    FailedPrecondition {
        precondition: OTHER_PRODUCT,
        reason: Reason::OtherProduct.to_string(),
        message: message.to_owned(),
        blocking: true,
    }
}

/// The window decides when an update begins, and nothing else: one that has begun is no longer asked for.
fn maintenance_window(window: UpdateWindow<'_>) -> Option<FailedPrecondition> {
    let ClosedWindow { reason, message } = window.windows.closed(window.name, window.now)?;
    Some(FailedPrecondition {
        precondition: MAINTENANCE_WINDOW,
        reason: reason.to_string(),
        message,
        blocking: true,
    })
}

/// The version that an update under way comes from; `None` without one.
pub(crate) fn under_way(history: &[UpdateHistory]) -> Option<&str> {
    let newest = history.first()?;
    if newest.state == UpdateState::Completed {
        return None;
    }
    let completed = history.iter().find(|entry| entry.state == UpdateState::Completed)?;
    Some(&completed.version)
}

/// Returns whether a release names the one that a cluster is at as a previous one, or the one that an
/// update under way comes from: it then repairs what that update broke.
pub fn is_declared(next: &ReleaseInfo, current: &Release, history: &[UpdateHistory]) -> bool {
    let names = |version: &str| next.previous.iter().any(|it| it == version);
    names(&current.version) || under_way(history).is_some_and(names)
}

/// Returns whether a release is among others.
pub fn is_listed(others: &[Release], target: &Release) -> bool {
    others.iter().any(|release| {
        release.image == target.image
            || digest(&release.image).is_some() && digest(&release.image) == digest(&target.image)
    })
}

/// Never blocks: an image that is not recommended is requested on purpose.
fn recommended(facts: &Facts<'_>, target: &Release) -> Option<FailedPrecondition> {
    let available = facts.available?;
    let current = facts.current;
    if is_listed(available, target) {
        return None;
    }
    let unknown = facts
        .retrieved
        .filter(|condition| condition.status == ConditionStatus::False)
        .map(|condition| format!(" ({}: {})", condition.reason, condition.message));
    Some(FailedPrecondition {
        precondition: RECOMMENDED,
        reason: Reason::UnknownUpdate.to_string(),
        message: format!(
            "No update from {} to {} is known{}: it is probably neither recommended nor supported",
            current.version,
            target.version,
            unknown.unwrap_or_default()
        ),
        blocking: false,
    })
}

/// Whether it is an update, and to another minor or major version.
fn is_to_another_minor(current: &Version, target: &Version) -> bool {
    target > current && minor(target) != minor(current)
}

fn minor(version: &Version) -> (u64, u64) {
    (version.major, version.minor)
}

/// The digest in a pull specification that has exactly one.
pub fn digest(image: &str) -> Option<&str> {
    let (name, digest) = image.split_once('@')?;
    (!name.is_empty() && !digest.is_empty() && !digest.contains('@')).then_some(digest)
}

#[cfg(test)]
mod tests;
