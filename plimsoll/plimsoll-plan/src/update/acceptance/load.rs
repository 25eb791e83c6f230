//! How far the release that was asked for has been accepted (CV-10.2).

use plimsoll_api::{ConditionStatus, Reason};

/// The steps that a release goes through before it is applied, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadStep {
    /// Fetching and verifying it.
    Retrieve,
    /// Reading its manifests.
    Load,
    /// Comparing its version with the one asked for.
    VerifyVersion,
    /// Checking whether the cluster may go to it.
    Preconditions,
    /// Waiting for the MaintenanceWindow of the cluster to open, which is all that is in the way.
    Window,
    /// It is accepted.
    Loaded,
}

/// Where a release stands on its way to being accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadStatus {
    /// The step.
    pub step: LoadStep,
    /// Version of the release, as far as it is known.
    pub version: String,
    /// Pull specification of the release.
    pub image: String,
    /// Architecture of the payload; known once it is loaded.
    pub architecture: String,
    /// Why the step failed; `None` while it lasts, and once the release is accepted.
    pub failure: Option<String>,
}

impl LoadStatus {
    /// Status, reason and message of `ReleaseAccepted`.
    pub fn condition(&self) -> (ConditionStatus, Reason, String) {
        let reason = match self.step {
            LoadStep::Retrieve => Reason::RetrievePayload,
            LoadStep::Load => Reason::LoadPayload,
            LoadStep::VerifyVersion => Reason::VerifyPayloadVersion,
            LoadStep::Preconditions => Reason::PreconditionChecks,
            LoadStep::Window => Reason::MaintenanceWindowClosed,
            LoadStep::Loaded => Reason::PayloadLoaded,
        };
        let status = match (self.step, &self.failure) {
            (LoadStep::Loaded, _) => ConditionStatus::True,
            (_, Some(_)) => ConditionStatus::False,
            (_, None) => ConditionStatus::Unknown,
        };
        (status, reason, self.message())
    }

    fn message(&self) -> String {
        let release = format!("version={:?} image={:?}", self.version, self.image);
        match (self.step, &self.failure) {
            (LoadStep::Loaded, _) => {
                format!("Payload loaded {release} architecture={:?}", self.architecture)
            }
            (LoadStep::Retrieve, None) => format!("Retrieving and verifying payload {release}"),
            (LoadStep::Load, None) => format!("Loading payload {release}"),
            (LoadStep::VerifyVersion, None) => format!("Verifying payload {release}"),
            (LoadStep::Preconditions | LoadStep::Window, None) => {
                format!("Checking preconditions of payload {release}")
            }
            (LoadStep::Retrieve, Some(failure)) => {
                format!("Retrieving payload failed {release} failure={failure}")
            }
            (LoadStep::Load, Some(failure)) => {
                format!("Loading payload failed {release} failure={failure}")
            }
            (LoadStep::VerifyVersion, Some(failure)) => {
                format!("Verifying payload failed {release} failure={failure}")
            }
            (LoadStep::Preconditions | LoadStep::Window, Some(failure)) => {
                format!("Preconditions failed for payload loaded {release}: {failure}")
            }
        }
    }
}
