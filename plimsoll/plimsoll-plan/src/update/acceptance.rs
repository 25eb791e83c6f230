//! How a release that is asked for becomes the one that is applied (CV-10, CV-26).
//!
//! A state machine without clients or clocks: given what is requested and how each step went, it
//! returns what to do next. A release that is rejected never disturbs the one that is applied; it
//! is tried again by itself, so that a repaired store or an administrator's action is enough.
//!
//! Steps: retrieving (and verifying), loading, comparing the version, checking preconditions. What
//! a new release enables implicitly is computed by the caller when the release is accepted, before
//! anything is swapped.
//!
//! # Departures from upstream
//!
//! * Asking for nothing means: stay at what is being applied, also in the midst of an update.
//!   There, the program and its release are one, and what "nothing" means depends on how far the
//!   program itself has been replaced.
//! * `ReleaseAccepted` does not fall back to "retrieving" each time a rejected release is tried
//!   again: it tells of the last failure until something else comes of it.

mod load;

use std::time::Duration;

use plimsoll_api::config::{Release, Update};

use crate::update::preconditions::{self, Facts, PreconditionVerdict};
use crate::uptime::Uptime;

pub use load::{LoadStatus, LoadStep};

/// First delay before a release that could not be retrieved or loaded is tried again.
pub const RETRY_DELAY_MIN: Duration = Duration::from_secs(5);
/// Longest such delay: a store that is repaired is tried again within it.
pub const RETRY_DELAY_MAX: Duration = Duration::from_secs(120);

/// A release that is asked for, found out from the spec.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestedRelease {
    /// The version it must have; empty for any.
    pub version: String,
    /// Pull specification.
    pub image: String,
    /// Go ahead although verification or preconditions fail.
    pub force: bool,
}

/// Which release a valid request means; `None` asks for nothing, and so does a version that is not
/// available. `multi` is the release of several architectures that has the version asked for.
pub fn resolve(
    requested: Option<&Update>,
    available: &[Release],
    multi: Option<&Release>,
) -> Option<RequestedRelease> {
    let Update { architecture, version, image, force, accept_risks: _ } = requested?;
    let requested = |version: &str, image: &str| RequestedRelease {
        version: version.to_owned(),
        image: image.to_owned(),
        force: *force,
    };
    if !image.is_empty() {
        return Some(requested(version, image));
    }
    if !architecture.is_empty() {
        return multi.map(|release| requested(&release.version, &release.image));
    }
    let is_meant = |release: &&Release| release.version == *version && !release.image.is_empty();
    available.iter().find(is_meant).map(|release| requested(version, &release.image))
}

/// What became of the signature of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verification {
    /// Its source vouches for it, as a directory on disk does: nothing is signed there.
    NotSigned,
    /// A signature was found good.
    Verified,
    /// It cannot be verified, and why.
    Failed(String),
}

/// What a payload says of itself once it is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadIdentity {
    /// Version of its release.
    pub version: String,
    /// Its architecture, as Go names it.
    pub architecture: String,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcceptanceCommand {
    /// Nothing.
    Nothing,
    /// Give up what is under way.
    Cancel,
    /// Retrieve a release, giving up what is under way; results carry the ticket.
    Retrieve(u64, RequestedRelease),
    /// Load what was retrieved.
    Load(u64),
    /// Apply what was loaded.
    Accept {
        /// Whether a signature was found good.
        verified: bool,
        /// Risks that are accepted by that; empty for none.
        accepted_risks: String,
    },
}

/// A release on its way to being applied.
#[derive(Debug, Clone)]
struct Attempt {
    requested: RequestedRelease,
    step: LoadStep,
    failed: bool,
    verification: Verification,
    architecture: String,
    /// What `ReleaseAccepted` tells.
    shown: LoadStatus,
    tries: u32,
    retry_at: Option<Uptime>,
}

/// The acceptance of releases.
#[derive(Debug, Clone)]
pub struct Acceptance {
    /// The release that is applied, and its architecture.
    running: LoadStatus,
    attempt: Option<Attempt>,
    ticket: u64,
}

impl Acceptance {
    /// Begins with a release that is applied.
    pub fn new(running: &Release, architecture: &str) -> Self {
        Self { running: loaded(running, architecture), attempt: None, ticket: 0 }
    }

    /// A release has taken the place of the one that was applied.
    pub fn swapped(&mut self, running: &Release, architecture: &str) {
        self.running = loaded(running, architecture);
        self.attempt = None;
        self.ticket += 1;
    }

    /// A release is asked for, or nothing is.
    pub fn ask(&mut self, requested: Option<RequestedRelease>) -> AcceptanceCommand {
        let requested = requested.filter(|requested| requested.image != self.running.image);
        let same = self.attempt.as_ref().map(|attempt| &attempt.requested) == requested.as_ref();
        match requested {
            _ if same => AcceptanceCommand::Nothing,
            None => {
                self.attempt = None;
                self.ticket += 1;
                AcceptanceCommand::Cancel
            }
            Some(requested) => {
                self.attempt = Some(Attempt::new(requested.clone()));
                self.retrieve(requested)
            }
        }
    }

    fn retrieve(&mut self, requested: RequestedRelease) -> AcceptanceCommand {
        self.ticket += 1;
        AcceptanceCommand::Retrieve(self.ticket, requested)
    }

    /// A release was retrieved, or could not be.
    pub fn retrieved(
        &mut self,
        ticket: u64,
        result: Result<Verification, String>,
        uptime: Uptime,
    ) -> AcceptanceCommand {
        let Some(attempt) = self.attempt.as_mut().filter(|_| ticket == self.ticket) else {
            return AcceptanceCommand::Nothing;
        };
        let verification = match result {
            Ok(Verification::Failed(why)) if !attempt.requested.force => {
                let text = format!("The update cannot be verified: {why}");
                return attempt.fail(LoadStep::Retrieve, text, Some(uptime));
            }
            Ok(verification) => verification,
            Err(failure) => return attempt.fail(LoadStep::Retrieve, failure, Some(uptime)),
        };
        attempt.verification = verification;
        attempt.enter(LoadStep::Load);
        AcceptanceCommand::Load(ticket)
    }

    /// A release was loaded, or could not be.
    pub fn loaded(
        &mut self,
        ticket: u64,
        result: Result<PayloadIdentity, String>,
        facts: &Facts<'_>,
        uptime: Uptime,
    ) -> AcceptanceCommand {
        let Some(attempt) = self.attempt.as_mut().filter(|_| ticket == self.ticket) else {
            return AcceptanceCommand::Nothing;
        };
        let identity = match result {
            Ok(identity) => identity,
            Err(failure) => return attempt.fail(LoadStep::Load, failure, Some(uptime)),
        };
        attempt.enter(LoadStep::VerifyVersion);
        let PayloadIdentity { version, architecture } = identity;
        let expected = &attempt.requested.version;
        if !expected.is_empty() && *expected != version {
            let text = format!(
                "release image version {version} does not match the expected upstream version \
                 {expected}"
            );
            return attempt.fail(LoadStep::VerifyVersion, text, Some(uptime));
        }
        attempt.architecture = architecture;
        attempt.shown.version.clone_from(&version);
        attempt.enter(LoadStep::Preconditions);
        attempt.check(facts, version)
    }

    /// Checks the preconditions once more, if they are what stands in the way: the cluster may
    /// have changed.
    pub fn reconsider(&mut self, facts: &Facts<'_>) -> AcceptanceCommand {
        match &mut self.attempt {
            Some(attempt) if attempt.is_held_up() => {
                let version = attempt.shown.version.clone();
                attempt.check(facts, version)
            }
            _ => AcceptanceCommand::Nothing,
        }
    }

    /// Whether preconditions are what stands in the way.
    pub fn is_held_up(&self) -> bool {
        self.attempt.as_ref().is_some_and(Attempt::is_held_up)
    }

    /// Tries a rejected release again, if it is time.
    pub fn retry(&mut self, uptime: Uptime) -> AcceptanceCommand {
        let due = |attempt: &&mut Attempt| attempt.retry_at.is_some_and(|at| at <= uptime);
        let Some(attempt) = self.attempt.as_mut().filter(due) else {
            return AcceptanceCommand::Nothing;
        };
        attempt.retry_at = None;
        attempt.step = LoadStep::Retrieve;
        let requested = attempt.requested.clone();
        self.retrieve(requested)
    }

    /// When to call [`Self::retry`].
    pub fn wake_at(&self) -> Option<Uptime> {
        self.attempt.as_ref().and_then(|attempt| attempt.retry_at)
    }

    /// The release that is applied.
    pub fn running(&self) -> &LoadStatus {
        &self.running
    }

    /// What `ReleaseAccepted` tells.
    pub fn status(&self) -> &LoadStatus {
        self.attempt.as_ref().map_or(&self.running, |attempt| &attempt.shown)
    }

    /// The release under way or rejected, and how often it was tried in vain.
    pub fn requested(&self) -> Option<(&RequestedRelease, u32)> {
        self.attempt.as_ref().map(|attempt| (&attempt.requested, attempt.tries))
    }
}

impl Attempt {
    fn new(requested: RequestedRelease) -> Self {
        let shown = LoadStatus {
            step: LoadStep::Retrieve,
            version: requested.version.clone(),
            image: requested.image.clone(),
            architecture: String::new(),
            failure: None,
        };
        Self {
            requested,
            step: LoadStep::Retrieve,
            failed: false,
            verification: Verification::NotSigned,
            architecture: String::new(),
            shown,
            tries: 0,
            retry_at: None,
        }
    }

    /// Returns whether preconditions are what stands in the way.
    fn is_held_up(&self) -> bool {
        matches!(self.step, LoadStep::Preconditions | LoadStep::Window)
    }

    fn enter(&mut self, step: LoadStep) {
        self.step = step;
        if !self.failed {
            self.shown.step = step;
        }
    }

    fn fail(
        &mut self,
        step: LoadStep,
        failure: String,
        retry_from: Option<Uptime>,
    ) -> AcceptanceCommand {
        self.step = step;
        self.failed = true;
        self.shown.step = step;
        self.shown.failure = Some(failure);
        if let Some(uptime) = retry_from {
            let doublings = self.tries.min(10);
            self.retry_at =
                Some(uptime + (RETRY_DELAY_MIN * 2u32.pow(doublings)).min(RETRY_DELAY_MAX));
            self.tries += 1;
        }
        AcceptanceCommand::Nothing
    }

    fn check(&mut self, facts: &Facts<'_>, version: String) -> AcceptanceCommand {
        let target = Release { version, image: self.requested.image.clone(), ..Release::default() };
        let findings = preconditions::check(facts, &target);
        let accepted = match preconditions::judge(&findings, self.requested.force) {
            PreconditionVerdict::Rejected(text) => {
                let step = match preconditions::waits_for_window(facts, &findings) {
                    true => LoadStep::Window,
                    false => LoadStep::Preconditions,
                };
                return self.fail(step, text, None);
            }
            PreconditionVerdict::Accepted(text) => text,
        };
        let mut risks = Vec::new();
        if let Verification::Failed(why) = &self.verification {
            risks.push(format!(
                "Target release version={:?} image={:?} cannot be verified, but continuing anyway \
                 because the update was forced: {why}",
                target.version, target.image
            ));
        }
        risks.extend(Some(accepted).filter(|text| !text.is_empty()));
        AcceptanceCommand::Accept {
            verified: self.verification == Verification::Verified,
            accepted_risks: risks.join("\n"),
        }
    }
}

fn loaded(release: &Release, architecture: &str) -> LoadStatus {
    LoadStatus {
        step: LoadStep::Loaded,
        version: release.version.clone(),
        image: release.image.clone(),
        architecture: architecture.to_owned(),
        failure: None,
    }
}

#[cfg(test)]
mod tests;
