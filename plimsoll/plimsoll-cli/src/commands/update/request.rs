//! From a command line to a request, or to what stands in its way and the flag that lets it pass.

use jiff::Timestamp;
use plimsoll_api::config::{Release, Update, UpdateState};
use plimsoll_api::{Condition, ConditionStatus, Reason};
use plimsoll_plan::progress::pause::NEXT;
use plimsoll_plan::update::preconditions::{FailedPrecondition, digest, lower_version};
use semver::Version;

use super::UpdateToArguments;
use plimsoll_simulation::cluster_state::ClusterState;

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum UpdateDecision {
    /// Nothing, and why.
    Nothing(String),
    /// The request to write, and what to say.
    Patch(Update, String),
}

/// Why a request is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestError {
    /// The version is not offered.
    #[error(
        "{version} is not one of the available updates: {available}\nTo go to a release that is \
         not listed, name its image with --to-image and use --allow-explicit-update."
    )]
    NotAvailable {
        /// What was asked for.
        version: String,
        /// What there is.
        available: String,
    },
    /// Nothing is offered at all.
    #[error(
        "no updates are available from {current}\nTo go to a release that is not listed, name its \
         image with --to-image and use --allow-explicit-update."
    )]
    NoneAvailable {
        /// The version that the cluster is at.
        current: String,
    },
    /// The image is not offered.
    #[error(
        "the image {image:?} is not one of the available updates\nIf you want to update to it \
         anyway, use --allow-explicit-update."
    )]
    Explicit {
        /// The image.
        image: String,
    },
    /// The image is named by a tag.
    #[error(
        "the image {image:?} is not named by its digest, so what is applied may change\nName it \
         as NAME@sha256:DIGEST. If you want to use it anyway, use --force."
    )]
    NoDigest {
        /// The image.
        image: String,
    },
    /// The version is lower than the cluster's, and not one that it may go back to.
    #[error("{message}\nIf you want to go back anyway, use --force.")]
    LowerVersion {
        /// Why the cluster may not go back to it.
        message: String,
    },
    /// There is no update to pause.
    #[error(
        "no update is in progress\nTo pause the next one, name a run level of it with --before."
    )]
    NoUpdate,
    /// The cluster is not at rest.
    #[error(
        "{what}\n\n  Reason: {reason}\n  Message: {message}\n\nIf you want to update anyway, use \
         --allow-update-with-warnings."
    )]
    Warning {
        /// What is the matter.
        what: &'static str,
        /// The condition's reason.
        reason: String,
        /// The condition's message.
        message: String,
    },
}

/// Decides what to ask for at a time.
pub(super) fn update(
    cluster: &ClusterState,
    requested: &UpdateToArguments,
    now: Timestamp,
) -> Result<UpdateDecision, RequestError> {
    let (version, image) = target(cluster, requested)?;
    let status = &cluster.status;
    let is_there = status.desired.image == image;
    let done = status.history.first().is_some_and(|it| it.state == UpdateState::Completed);
    if is_there && cluster.spec.desired_update.as_ref().is_none_or(|it| it.image == image) {
        let name = if version.is_empty() { &image } else { &version };
        return Ok(UpdateDecision::Nothing(match (requested.latest, done) {
            (true, true) => {
                format!("info: Cluster is already at the latest available version {name}")
            }
            (false, true) => format!("info: Cluster is already at {name}"),
            (_, false) => format!("info: The update to {name} is already in progress"),
        }));
    }
    let status = &cluster.status;
    let target = Version::parse(&version).ok().filter(|_| !requested.force);
    let lower = target.and_then(|it| lower_version(&status.desired, &status.history, &it));
    if let Some(message) = lower {
        return Err(RequestError::LowerVersion { message });
    }
    if !requested.allow_update_with_warnings && !requested.force {
        warnings(&status.conditions)?;
        refusals(cluster, &version, &image, now)?;
    }
    let mut text = match (&requested.to_image, version.as_str()) {
        (Some(_), _) | (None, "") => format!("Requested update to release image {image}"),
        (None, version) => format!("Requested update to {version}"),
    };
    let force = requested.force;
    if let Some(window) = closed_window(cluster, &version, &image, now).filter(|_| !force) {
        text = format!("{text}, which waits to begin: {window}");
    }
    let update = Update { version, image, force, ..Update::default() };
    Ok(UpdateDecision::Patch(update, text))
}

/// Version and image of the release that is meant.
fn target(
    cluster: &ClusterState,
    requested: &UpdateToArguments,
) -> Result<(String, String), RequestError> {
    let status = &cluster.status;
    let available = status.available_updates.as_deref().unwrap_or_default();
    if let Some(image) = &requested.to_image {
        let listed =
            available.iter().any(|it| it.image == *image) || *image == status.desired.image;
        if digest(image).is_none() && !requested.force {
            return Err(RequestError::NoDigest { image: image.clone() });
        }
        if !listed && !requested.allow_explicit_update {
            return Err(RequestError::Explicit { image: image.clone() });
        }
        return Ok((requested.version.clone().unwrap_or_default(), image.clone()));
    }
    let current = &status.desired;
    let of = |release: &Release| (release.version.clone(), release.image.clone());
    let Some(version) = &requested.version else {
        return Ok(available.first().map_or_else(|| of(current), of));
    };
    let known = available.iter().chain([current]).find(|release| release.version == *version);
    if let Some(release) = known {
        return Ok(of(release));
    }
    // Where the cluster has been before is known too; the server decides whether it may go back.
    let before = status.history.iter().find(|it| it.version == *version && !it.image.is_empty());
    match before {
        Some(entry) => Ok((entry.version.clone(), entry.image.clone())),
        None if available.is_empty() => {
            Err(RequestError::NoneAvailable { current: current.version.clone() })
        }
        None => {
            let versions: Vec<&str> = available.iter().map(|it| it.version.as_str()).collect();
            let (version, available) = (version.clone(), versions.join(", "));
            Err(RequestError::NotAvailable { version, available })
        }
    }
}

fn warnings(conditions: &[Condition]) -> Result<(), RequestError> {
    let guards = [
        ("Invalid", "The cluster version is invalid."),
        ("Failing", "The cluster is experiencing an error reconciling its current release."),
        ("Progressing", "The cluster is already being updated."),
    ];
    for (type_, what) in guards {
        let found =
            conditions.iter().find(|it| it.type_ == type_ && it.status == ConditionStatus::True);
        if let Some(Condition { reason, message, .. }) = found {
            let (reason, message) = (reason.clone(), message.clone());
            return Err(RequestError::Warning { what, reason, message });
        }
    }
    Ok(())
}

/// What the controller would refuse the release for, as far as that is known without its payload.
fn refusals(
    cluster: &ClusterState,
    version: &str,
    image: &str,
    now: Timestamp,
) -> Result<(), RequestError> {
    if version.is_empty() {
        return Ok(());
    }
    let (version, image) = (version.to_owned(), image.to_owned());
    let next = Release { version, image, ..Release::default() };
    let mut found = cluster.known_findings(&next, now).into_iter();
    match found.find(|it| it.blocking && !waits_for_window(it, cluster, now)) {
        None => Ok(()),
        Some(FailedPrecondition { reason, message, .. }) => {
            let what = "The update would be refused.";
            Err(RequestError::Warning { what, reason, message })
        }
    }
}

/// Returns whether a precondition waits for a MaintenanceWindow that opens by itself: such a request is in order.
fn waits_for_window(finding: &FailedPrecondition, cluster: &ClusterState, now: Timestamp) -> bool {
    finding.reason == Reason::MaintenanceWindowClosed.as_str()
        && cluster.window_opens_at(now).is_some()
}

/// Returns why a release that is requested at a time has to wait for its MaintenanceWindow; `None` if it has not.
fn closed_window(
    cluster: &ClusterState,
    version: &str,
    image: &str,
    now: Timestamp,
) -> Option<String> {
    let (version, image) = (version.to_owned(), image.to_owned());
    let next = Release { version, image, ..Release::default() };
    let mut found = cluster.known_findings(&next, now).into_iter();
    found.find(|it| waits_for_window(it, cluster, now)).map(|it| it.message)
}

/// The annotation that pauses an update, and what to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PauseDecision {
    /// Value of the annotation.
    pub(super) annotation: String,
    /// What to say.
    pub(super) text: String,
}

/// Decides where to pause: without an update in progress, only before a run level of the next one.
pub(super) fn pause(
    cluster: &ClusterState,
    before: Option<u32>,
) -> Result<PauseDecision, RequestError> {
    let newest = cluster.status.history.first();
    let in_progress = newest.is_some_and(|entry| entry.state == UpdateState::Partial);
    let text = match (in_progress, before) {
        (true, None) => "The update pauses before the next run level".to_owned(),
        (true, Some(level)) => format!("The update pauses before run level {level}"),
        (false, None) => return Err(RequestError::NoUpdate),
        (false, Some(level)) => {
            format!("No update is in progress; the next one pauses before run level {level}")
        }
    };
    let annotation = before.map_or_else(|| NEXT.to_owned(), |level| level.to_string());
    Ok(PauseDecision { annotation, text })
}

/// What to say when a request is taken back.
pub(super) fn cleared(cluster: &ClusterState) -> String {
    let Some(update) = &cluster.spec.desired_update else {
        return "info: No update is requested".to_owned();
    };
    let name = if update.version.is_empty() { &update.image } else { &update.version };
    let current = &cluster.status.desired.version;
    let completed = cluster.status.history.first().map(|it| it.state);
    if completed == Some(UpdateState::Partial) {
        let back = cluster.status.history.iter().find(|it| it.state == UpdateState::Completed);
        let back = back.map_or(String::new(), |it| {
            format!("; to go back, use `plimsoll update to {}`", it.version)
        });
        return format!("Cleared the request for {name}; the update to {current} continues{back}");
    }
    format!("Cleared the request for {name}; the cluster stays at {current}")
}

#[cfg(test)]
mod tests;
