//! The state of a cluster as its ClusterVersion, ReleaseProgress and FeatureGate report it.

use std::collections::BTreeMap;

use std::fmt::Debug;

use jiff::Timestamp;
use k8s_openapi::{ClusterResourceScope, Resource};
use kube::core::DynamicObject;
use kube::{Api, Client};
use plimsoll_api::config::{ClusterVersionSpec, ClusterVersionStatus, Release, UpdateState};
use plimsoll_api::progress::ReleaseProgressStatus;
use plimsoll_api::{ApiKind, CLUSTER_VERSION_NAME, Condition, ConditionStatus, Reason};
use plimsoll_api::{ClusterVersion, ReleaseProgress};
use plimsoll_content::Payload;
use plimsoll_controller::{
    api_resource, cluster_features, maintenance_windows, operators_on_platform,
};
use plimsoll_plan::plan::features::Features;
use plimsoll_plan::plan::mode::{self, Mode};
use plimsoll_plan::reconciler::refusal;
use plimsoll_plan::removal::{DeletionTracker, removed_kinds};
use plimsoll_plan::spec::overrides::{OVERRIDE_TERMS, Overrides};
use plimsoll_plan::update::operators::OperatorsOnPlatform;
use plimsoll_plan::update::preconditions::{
    self, Facts, FailedPrecondition, Objecting, UpdateWindow, WINDOW_ANNOTATION,
};
use plimsoll_plan::update::target::Target;
use plimsoll_plan::windows::MaintenanceWindows;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Why the state of a cluster is not known.
#[derive(Debug, Error)]
pub enum StateError {
    /// There is no ClusterVersion.
    #[error(
        "the cluster has no ClusterVersion \"{CLUSTER_VERSION_NAME}\": create one with `plimsoll run \
         --create`; `plimsoll release plan --to DIR` shows what an installation would do"
    )]
    NoClusterVersion,
    /// An object cannot be read, or is not of its kind's form.
    #[error("failed to read {kind} \"{CLUSTER_VERSION_NAME}\"")]
    Read {
        /// The kind.
        kind: &'static str,
        /// The error of the client.
        source: kube::Error,
    },
    /// The FeatureGate or the Operators cannot be read.
    #[error(transparent)]
    Controller(#[from] plimsoll_controller::Error),
}

/// The version-related objects of a cluster, read once.
#[derive(Debug, Clone, Default)]
pub struct ClusterState {
    /// The spec of the ClusterVersion.
    pub spec: ClusterVersionSpec,
    /// The status of the ClusterVersion.
    pub status: ClusterVersionStatus,
    /// The status of the ReleaseProgress; empty where there is none.
    pub progress: ReleaseProgressStatus,
    /// The annotations of the ClusterVersion.
    pub annotations: BTreeMap<String, String>,
    /// The feature set and gates of the cluster's FeatureGate.
    pub features: Features,
    /// What installed Operators require of the platform.
    pub operators: OperatorsOnPlatform,
    /// The MaintenanceWindows; none if the ClusterVersion names none.
    pub windows: MaintenanceWindows,
    /// Whether it was installed for a rehearsal: preconditions count as where there is a payload
    /// store, and overrides are the rehearsal's own.
    pub is_rehearsed: bool,
}

impl ClusterState {
    /// Reads the state from the API server.
    ///
    /// # Errors
    ///
    /// When a request fails, there is no ClusterVersion, or an object cannot be deserialized.
    pub async fn read(client: &Client) -> Result<Self, StateError> {
        Self::read_opt(client).await?.ok_or(StateError::NoClusterVersion)
    }

    /// Reads the state from the API server; `None` if there is no ClusterVersion.
    ///
    /// # Errors
    ///
    /// When a request fails, or an object cannot be deserialized.
    pub async fn read_opt(client: &Client) -> Result<Option<Self>, StateError> {
        let Some(version) = get::<ClusterVersion>(client).await? else { return Ok(None) };
        // A cluster that is not reconciled to a release has no ReleaseProgress, nor its definition.
        let progress = get::<ReleaseProgress>(client).await?;
        let annotations = version.metadata.annotations.unwrap_or_default();
        let windows = match annotations.contains_key(WINDOW_ANNOTATION) {
            true => maintenance_windows(client).await?,
            false => MaintenanceWindows::default(),
        };
        Ok(Some(Self {
            windows,
            spec: version.spec,
            status: version.status.unwrap_or_default(),
            progress: progress.and_then(|it| it.status).unwrap_or_default(),
            annotations,
            features: cluster_features(client).await?,
            operators: operators_on_platform(client).await?,
            is_rehearsed: false,
        }))
    }

    /// The MaintenanceWindow that updates begin in, at a time; `None` for any time.
    fn window(&self, now: Timestamp) -> Option<UpdateWindow<'_>> {
        let name = self.annotations.get(WINDOW_ANNOTATION)?;
        UpdateWindow::of(name, &self.windows, now)
    }

    /// When the MaintenanceWindow opens that updates begin in, if it is closed at a time; `None` if it is open, or opens
    /// at no time that is known, or updates begin at any time.
    pub fn window_opens_at(&self, now: Timestamp) -> Option<Timestamp> {
        let UpdateWindow { name, windows, now } = self.window(now)?;
        windows.opens_at(name, now)
    }

    /// A condition of the ClusterVersion.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.type_ == type_)
    }

    /// The release that the cluster is at or moves to; `None` before the first.
    pub fn release(&self) -> Option<Release> {
        Some(self.status.desired.clone()).filter(|release| !release.version.is_empty())
    }

    /// The release that was completely applied last, whatever is under way; `None` before the first.
    pub fn installed(&self) -> Option<Release> {
        let mut history = self.status.history.iter();
        let completed = history.find(|it| it.state == UpdateState::Completed)?;
        let (version, image) = (completed.version.clone(), completed.image.clone());
        Some(Release { version, image, ..Release::default() }).filter(|it| !it.version.is_empty())
    }

    /// The feature set that its controller was started with; `None` if it follows the FeatureGate.
    pub fn fixed_feature_set(&self) -> Option<&str> {
        self.progress.feature_set.as_deref()
    }

    /// Returns what the spec requests, as input of a plan; `feature_set` replaces that of the cluster.
    pub fn target(&self, profile: &str, feature_set: Option<&str>, now: Timestamp) -> Target {
        let terms = self.annotations.get(OVERRIDE_TERMS).map(String::as_str);
        let capabilities = &self.progress.capabilities;
        let implied = capabilities.implied.iter().map(|implied| &implied.capability);
        let shown = self.status.capabilities.enabled_capabilities.iter();
        Target {
            profile: profile.to_owned(),
            features: feature_set
                .or(self.fixed_feature_set())
                .map_or_else(|| self.features.clone(), Features::of_set),
            overrides: Overrides::parse(&self.spec.overrides, terms).for_inclusion(now),
            spec: self.spec.clone(),
            enabled: shown.chain(&capabilities.withheld).chain(implied).cloned().collect(),
            ..Target::default()
        }
    }

    /// The rules by which it would go to a release.
    pub fn mode(&self, release: &Release) -> Mode {
        mode::choose(&self.status.history, &release.image)
    }

    /// The preconditions that do not hold for going to a payload at a time, in the controller's own words.
    /// One that has no store checks but one of them: there, only a lower version blocks.
    pub fn findings(
        &self,
        payload: &Payload,
        target: &Target,
        now: Timestamp,
    ) -> Vec<FailedPrecondition> {
        let next = payload.named();
        let current = self.release().filter(|current| current.image != next.image);
        let Some(current) = current.filter(|_| self.mode(&next) == Mode::Updating) else {
            return Vec::new();
        };
        let available = self.status.available_updates.clone().unwrap_or_default();
        let is_declared = preconditions::is_listed(&available, &next)
            || preconditions::is_declared(&payload.release, &current, &self.status.history);
        let objection = self.objection_to(is_declared);
        let objecting = objection.map(|it| Objecting { reason: &it.reason, message: &it.message });
        let retrieved = self.condition("RetrievedUpdates");
        let has_store = retrieved.is_some_and(|it| it.reason != Reason::NoChannel.as_str());
        let tracker = DeletionTracker::recorded(&self.progress.deletions);
        // The release that is applied is not at hand: definitions say which kinds are removed.
        let context = target.context(payload);
        let removed = removed_kinds(&[], &payload.manifests, &context);
        let mut broken = self.operators.broken_without(&removed);
        if let Ok(broken) = &mut broken {
            broken.extend(self.operators.holding(&payload.manifests, &context));
        }
        let mut findings = preconditions::check(
            &Facts {
                current: &current,
                history: &self.status.history,
                objection: objecting.as_ref(),
                overrides_set: !target.overrides.is_empty() && !self.is_rehearsed,
                repeated: &tracker.repeated(&payload.manifests, &context),
                broken: broken.as_deref().map_err(String::as_str),
                other_product: None,
                available: has_store.then_some(available.as_slice()),
                retrieved,
                is_declared,
                window: self.window(now),
            },
            &next,
        );
        if !has_store && !self.is_rehearsed {
            // It is not requested: the controller is started with it.
            findings.retain(|it| it.reason != Reason::LowDesiredVersion.as_str());
            findings.iter_mut().for_each(|it| it.blocking = false);
            let refusal = refusal::goes_back(&self.status.history, &next);
            findings.extend(refusal.map(|it| preconditions::low_version(it.to_string())));
        }
        findings
    }

    /// The preconditions that are known not to hold at a time before the payload of a release is at hand. Its
    /// metadata may yet declare an update to it, so that no version is too far.
    pub fn known_findings(&self, next: &Release, now: Timestamp) -> Vec<FailedPrecondition> {
        let available = self.status.available_updates.as_deref().unwrap_or_default();
        let objection = self.objection_to(preconditions::is_listed(available, next));
        let objecting = objection.map(|it| Objecting { reason: &it.reason, message: &it.message });
        let facts = Facts {
            history: &self.status.history,
            objection: objecting.as_ref(),
            is_declared: true,
            window: self.window(now),
            ..Facts::of(&self.status.desired)
        };
        preconditions::check(&facts, next)
    }

    /// Returns the condition that objects to another minor version. What is declared may repair what an update
    /// under way broke.
    fn objection_to(&self, is_declared: bool) -> Option<&Condition> {
        let under_way = |it: &&Condition| it.reason == Reason::UpdateInProgress.as_str();
        self.objection().filter(|it| !is_declared || !under_way(it))
    }

    /// Returns the condition that objects to another minor version.
    fn objection(&self) -> Option<&Condition> {
        let mut objections = self.status.conditions.iter().filter(|condition| {
            condition.type_.starts_with("Upgradeable") && condition.status == ConditionStatus::False
        });
        let own = [Reason::ClusterVersionOverridesSet, Reason::MultipleReasons];
        let own = |it: &&Condition| own.iter().any(|reason| reason.as_str() == it.reason);
        match self.is_rehearsed {
            true => objections.find(|it| !own(it)),
            false => objections.find(|it| it.type_ == "Upgradeable"),
        }
    }
}

/// The objects of one of our kinds.
pub fn api(client: &Client, kind: ApiKind) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &api_resource(kind))
}

/// The object of a kind that has but one.
async fn get<K>(client: &Client) -> Result<Option<K>, StateError>
where
    K: Resource<Scope = ClusterResourceScope>
        + kube::Resource<DynamicType = (), Scope = ClusterResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
{
    match Api::<K>::all(client.clone()).get(CLUSTER_VERSION_NAME).await {
        Ok(object) => Ok(Some(object)),
        // There is none, or the kind is not even served.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(source) => Err(StateError::Read { kind: <K as Resource>::KIND, source }),
    }
}

#[cfg(test)]
mod tests;
