//! Scripted faults: which operator goes wrong, how, and when.
//!
//! The file is a YAML (or JSON) list:
//!
//! ```yaml
//! - operator: crane
//!   fault: NeverAvailable
//! - operator: beacon
//!   fault: Degraded
//!   minutes: 3
//!   after: 30s
//! - operator: tide-gauge
//!   fault: VersionStuck
//!   release: 1.1.0
//! ```
//!
//! `after` counts from the start of the simulation; `release` limits the fault to the update of the
//! operator to that release and its time there.

use std::collections::BTreeSet;

use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

/// Seconds in a minute.
const MINUTE: f64 = 60.0;

/// How an operator goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It reports its versions, but not that it is available.
    NeverAvailable,
    /// It is degraded for a while, from when it first has something to report.
    Degraded {
        /// For how long.
        lasts: Duration,
    },
    /// It goes on reporting the old versions.
    VersionStuck,
    /// It objects to updates to another minor version.
    NotUpgradeable,
}

/// A fault of one operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedFault {
    /// Name of the ClusterOperator.
    pub operator: String,
    /// What goes wrong.
    pub fault: Fault,
    /// When it begins, from the start of the simulation.
    pub after: Duration,
    /// The version of the release that it is limited to; `None` for all.
    pub release: Option<String>,
}

/// The faults of a simulation; none by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults(pub Vec<ScriptedFault>);

/// Why a script of faults cannot be used.
#[derive(Debug, Error)]
pub enum FaultError {
    /// The text is not a list of faults.
    #[error("failed to parse the faults")]
    Parse {
        /// Why not.
        #[source]
        source: Box<serde_saphyr::Error>,
    },
    /// `Degraded` does not say for how long.
    #[error("fault Degraded of operator `{operator}` does not say how many minutes it lasts")]
    MinutesMissing {
        /// The operator.
        operator: String,
    },
    /// The number of minutes is no time span.
    #[error("fault of operator `{operator}` cannot last {minutes} minutes")]
    Minutes {
        /// The operator.
        operator: String,
        /// The number given.
        minutes: f64,
    },
    /// Something other than `Degraded` says for how long.
    #[error("only fault Degraded has minutes, but that of operator `{operator}` is another one")]
    MinutesUnused {
        /// The operator.
        operator: String,
    },
    /// No release has the operator.
    #[error("no release has an operator `{operator}`; there are {}", known.join(", "))]
    OperatorUnknown {
        /// The operator.
        operator: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// The release is none of those given.
    #[error("fault of operator `{operator}` names release `{release}`; there are {}", known.join(", "))]
    ReleaseUnknown {
        /// The operator.
        operator: String,
        /// The release.
        release: String,
        /// Those there are.
        known: Vec<String>,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    operator: String,
    fault: Name,
    minutes: Option<f64>,
    #[serde(default, deserialize_with = "duration")]
    after: Duration,
    release: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum Name {
    NeverAvailable,
    Degraded,
    VersionStuck,
    NotUpgradeable,
}

impl Faults {
    /// Parses a list of faults.
    ///
    /// # Errors
    ///
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, FaultError> {
        let options = serde_saphyr::options! { with_snippet: false };
        let entries: Vec<Entry> = serde_saphyr::from_str_with_options(text, options)
            .map_err(|source| FaultError::Parse { source: Box::new(source) })?;
        entries.into_iter().map(ScriptedFault::try_from).collect::<Result<_, _>>().map(Self)
    }

    /// Checks that every operator and release that is named exists.
    ///
    /// # Errors
    ///
    /// Names the first that does not.
    pub fn check(&self, operators: &BTreeSet<&str>, releases: &[String]) -> Result<(), FaultError> {
        for scripted in &self.0 {
            let operator = scripted.operator.clone();
            if !operators.contains(operator.as_str()) {
                let known = operators.iter().map(|&name| name.to_owned()).collect();
                return Err(FaultError::OperatorUnknown { operator, known });
            }
            match &scripted.release {
                Some(release) if !releases.contains(release) => {
                    let (release, known) = (release.clone(), releases.to_vec());
                    return Err(FaultError::ReleaseUnknown { operator, release, known });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl TryFrom<Entry> for ScriptedFault {
    type Error = FaultError;

    fn try_from(entry: Entry) -> Result<Self, FaultError> {
        let Entry { operator, fault, minutes, after, release } = entry;
        let fault = match (fault, minutes) {
            (Name::Degraded, None) => return Err(FaultError::MinutesMissing { operator }),
            (Name::Degraded, Some(minutes)) => {
                let Ok(lasts) = Duration::try_from_secs_f64(minutes * MINUTE) else {
                    return Err(FaultError::Minutes { operator, minutes });
                };
                Fault::Degraded { lasts }
            }
            (_, Some(_)) => return Err(FaultError::MinutesUnused { operator }),
            (Name::NeverAvailable, None) => Fault::NeverAvailable,
            (Name::VersionStuck, None) => Fault::VersionStuck,
            (Name::NotUpgradeable, None) => Fault::NotUpgradeable,
        };
        Ok(Self { operator, fault, after, release })
    }
}

fn duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    crate::duration::parse(&text).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests;
