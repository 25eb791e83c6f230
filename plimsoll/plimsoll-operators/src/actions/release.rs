//! Actions on the release of the cluster: requests for an available update, or for more capabilities, in the
//! ClusterVersion. Carrying them out is up to the controller of the ClusterVersion.

use plimsoll_api::config::{
    CapabilitiesSpec, ClusterVersionSpec, ClusterVersionStatus, Update, UpdateState,
};
use plimsoll_api::olm::action::{ChangeOperation, ChangeState, PlannedChange};
use plimsoll_api::{Condition, ConditionStatus, Reason, read_usable};
use plimsoll_plan::spec::read::read;
use semver::Version;
use serde_json::Value;

use super::attributes::EffectiveAction;
use super::plan::ActionPlan;
use super::{ActionFailure, enumerated};

/// The progress of a request for a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapabilityRequest {
    /// It is enabled.
    Enabled,
    /// It is requested, and not enabled yet.
    Requested,
    /// It is not requested.
    Missing,
}

/// The ClusterVersion, as the API server has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedRelease {
    /// The uid of the object; empty if it has none.
    pub uid: String,
    /// The generation of its spec.
    pub generation: i64,
    /// The requested spec.
    pub spec: ClusterVersionSpec,
    /// Why the spec cannot be read, and where, in which case it is empty; `None` if it can.
    pub unreadable_spec: Option<String>,
    /// The reported status.
    pub status: ClusterVersionStatus,
}

impl ObservedRelease {
    /// Reads a ClusterVersion. Fields of its status that cannot be read count as absent.
    pub fn read(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let (spec, unreadable_spec) = match read(&object["spec"]) {
            Ok(spec) => (spec, None),
            Err(why) => (ClusterVersionSpec::default(), Some(why)),
        };
        Self {
            uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            spec,
            unreadable_spec,
            status: read_usable(&object["status"]),
        }
    }

    /// Returns why nothing can be requested; `None` if it can.
    pub fn refusal(&self) -> Option<String> {
        let why = self.unreadable_spec.as_ref()?;
        Some(format!("the ClusterVersion cannot be read: {why}; correct that first"))
    }

    /// Returns the version that was completed last; empty if none was.
    pub fn completed(&self) -> &str {
        let mut history = self.status.history.iter();
        let completed = history.find(|it| it.state == UpdateState::Completed);
        completed.map_or("", |it| &it.version)
    }

    /// Returns the requested update, by its version or else its image; empty if none is requested.
    pub fn requested(&self) -> &str {
        match &self.spec.desired_update {
            Some(Update { version, image, .. }) if version.is_empty() => image,
            Some(Update { version, .. }) => version,
            None => "",
        }
    }

    /// Returns the capabilities that are requested in addition to the baseline set.
    pub fn requested_capabilities(&self) -> &[String] {
        let capabilities = self.spec.capabilities.as_ref();
        capabilities.map_or(&[], |it: &CapabilitiesSpec| &it.additional_enabled_capabilities)
    }

    /// Returns the progress of a request for a capability.
    ///
    /// # Errors
    ///
    /// A message with the capabilities of the release, when it does not have this one.
    pub fn capability(&self, name: &str) -> Result<CapabilityRequest, String> {
        let status = &self.status.capabilities;
        let is_in = |names: &[String]| names.iter().any(|it| it == name);
        if !is_in(&status.known_capabilities) {
            let known = match status.known_capabilities.as_slice() {
                [] => "none".to_owned(),
                names => enumerated(names),
            };
            return Err(format!("this release has no capability {name}; it has {known}"));
        }
        Ok(if is_in(&status.enabled_capabilities) {
            CapabilityRequest::Enabled
        } else if is_in(self.requested_capabilities()) {
            CapabilityRequest::Requested
        } else {
            CapabilityRequest::Missing
        })
    }

    /// Returns whether a version is requested to which the cluster has not started to update.
    pub fn is_unfollowed(&self, version: &str) -> bool {
        let newest = self.status.history.first().map(|it| it.version.as_str());
        self.requested() == version && newest != Some(version)
    }

    /// Returns the version that the cluster is being updated to; `None` if no update is in progress.
    fn updating_to(&self) -> Option<&str> {
        let newest = self.status.history.first()?;
        (newest.state == UpdateState::Partial).then_some(newest.version.as_str())
    }

    fn condition(&self, type_: &str, status: ConditionStatus) -> Option<&Condition> {
        self.status.conditions.iter().find(|it| it.type_ == type_ && it.status == status)
    }

    fn update(&self, operation: ChangeOperation, version: &str) -> PlannedChange {
        PlannedChange {
            operation,
            uid: self.uid.clone(),
            requested_before: self.requested().to_owned(),
            requested: version.to_owned(),
            version_before: self.completed().to_owned(),
            version: version.to_owned(),
            ..PlannedChange::default()
        }
    }
}

/// Returns the ClusterVersion.
///
/// # Errors
///
/// When there is none, or it cannot be read.
fn required<'a>(
    action: &EffectiveAction,
    release: Option<&'a ObservedRelease>,
) -> Result<&'a ObservedRelease, ActionFailure> {
    let release = release.ok_or_else(|| {
        let class = &action.class;
        let message = format!("this cluster has no ClusterVersion: class {class} is about that");
        ActionFailure::new(Reason::InvalidAction, message)
    })?;
    match release.refusal() {
        Some(message) => Err(ActionFailure::new(Reason::InvalidAction, message)),
        None => Ok(release),
    }
}

/// Plans an update of the release: to a version, or to the newest recommended one.
///
/// # Errors
///
/// When the version is not recommended, or another update is in progress.
pub(super) fn update(
    action: &EffectiveAction,
    release: Option<&ObservedRelease>,
) -> Result<ActionPlan, ActionFailure> {
    let release = required(action, release)?;
    let (version, completed) = (action.text("version"), release.completed());
    if let Some(other) = release.updating_to() {
        if version != other {
            let message = format!("the cluster is being updated to {other}: wait until it is");
            return Err(ActionFailure::new(Reason::UpdateInProgress, message));
        }
        let changes = vec![release.update(ChangeOperation::Await, version)];
        let explanation = vec![format!("the update to {version} is in progress")];
        return Ok(ActionPlan { changes, explanation, ..ActionPlan::default() });
    }
    let available = release.status.available_updates.iter().flatten();
    let available: Vec<&str> = available.map(|it| it.version.as_str()).collect();
    let target = match version {
        "" => available.iter().copied().max_by_key(|it| Version::parse(it).ok()),
        version if version == completed => None,
        version if available.contains(&version) => Some(version),
        version => return Err(not_recommended(version, &available, release)),
    };
    let Some(target) = target else {
        let explanation = match version {
            "" => format!("no update of release {completed} is recommended"),
            _ => format!("the cluster is at release {completed}"),
        };
        return Ok(ActionPlan { explanation: vec![explanation], ..ActionPlan::default() });
    };
    Ok(ActionPlan {
        changes: vec![release.update(ChangeOperation::UpdateRelease, target)],
        explanation: vec![format!("the release is updated from {completed} to {target}")],
        ..ActionPlan::default()
    })
}

fn not_recommended(version: &str, available: &[&str], release: &ObservedRelease) -> ActionFailure {
    let mut conditional = release.status.conditional_updates.iter();
    if let Some(it) = conditional.find(|it| it.release.version == version) {
        let reasons = it.conditions.iter().filter(|it| it.type_ == "Recommended");
        let reasons: Vec<String> = reasons.map(|it| it.message.clone()).collect();
        let why =
            if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
        let message = format!("release {version} is not recommended for this cluster{why}");
        return ActionFailure::new(Reason::VersionNotFound, message);
    }
    let available: Vec<String> = available.iter().map(|it| (*it).to_owned()).collect();
    let others = match available.as_slice() {
        [] => "none is".to_owned(),
        available => format!("these are: {}", enumerated(available)),
    };
    let message = format!("release {version} is not among the available updates; {others}");
    ActionFailure::new(Reason::VersionNotFound, message)
}

/// Plans requests for capabilities.
///
/// # Errors
///
/// When the release does not have one of them.
pub(super) fn enable(
    action: &EffectiveAction,
    release: Option<&ObservedRelease>,
) -> Result<ActionPlan, ActionFailure> {
    let release = required(action, release)?;
    let named = action.get("parameters.capabilities").and_then(Value::as_array);
    let named = named.into_iter().flatten().filter_map(Value::as_str);
    let mut plan = ActionPlan::default();
    for name in named {
        let request = release.capability(name);
        let operation = match request.map_err(|it| ActionFailure::new(Reason::InvalidAction, it))? {
            CapabilityRequest::Enabled => {
                plan.explanation.push(format!("capability {name} is enabled"));
                continue;
            }
            CapabilityRequest::Requested => ChangeOperation::Await,
            CapabilityRequest::Missing => ChangeOperation::EnableCapability,
        };
        plan.changes.push(PlannedChange {
            operation,
            uid: release.uid.clone(),
            capability: name.to_owned(),
            ..PlannedChange::default()
        });
    }
    Ok(plan)
}

/// Returns the progress of a change according to the ClusterVersion: its state, the reason and a message.
pub(super) fn observed(
    change: &PlannedChange,
    release: Option<&ObservedRelease>,
) -> (ChangeState, String, String) {
    let state = |state, reason: &str, message: &str| (state, reason.to_owned(), message.to_owned());
    let Some(release) = release.filter(|it| it.uid == change.uid) else {
        let message = "the ClusterVersion was deleted before it was done";
        return state(ChangeState::Failed, Reason::Deleting.as_str(), message);
    };
    let is_current = release.status.observed_generation == release.generation;
    let progressing = release.condition("Progressing", ConditionStatus::True);
    let (reason, message) =
        progressing.map_or(("", ""), |it| (it.reason.as_str(), it.message.as_str()));
    if !change.capability.is_empty() {
        let mut enabled = release.status.capabilities.enabled_capabilities.iter();
        let is_done =
            is_current && progressing.is_none() && enabled.any(|it| *it == change.capability);
        let enabled = format!("capability {} is enabled", change.capability);
        return match is_done {
            true => state(ChangeState::Completed, Reason::CapabilityEnabled.as_str(), &enabled),
            false => state(ChangeState::Written, reason, message),
        };
    }
    let newest = release.status.history.first();
    let is_done =
        newest.is_some_and(|it| it.state == UpdateState::Completed && it.version == change.version);
    if is_done {
        let message = format!("the cluster is at release {}", change.version);
        return state(ChangeState::Completed, Reason::UpdateCompleted.as_str(), &message);
    }
    if release.unreadable_spec.is_some() {
        // What is requested is not known.
        return state(ChangeState::Written, reason, message);
    }
    let requested = release.requested();
    // A watch may show the request later than the response to it.
    if requested != change.requested && requested != change.requested_before {
        let message = format!("another client requested {requested:?}");
        return state(ChangeState::Failed, Reason::PlanChanged.as_str(), &message);
    }
    let refused = release.condition("ReleaseAccepted", ConditionStatus::False);
    match refused.filter(|_| is_current && release.is_unfollowed(&change.requested)) {
        Some(it) => {
            let message = format!("{}; the request is taken back", it.message);
            state(ChangeState::Failed, &it.reason, &message)
        }
        None => state(ChangeState::Written, reason, message),
    }
}

#[cfg(test)]
mod tests;
