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
//! - package: lantern
//!   fault: KeepsFinalizers
//!   version: 1.1.1
//! ```
//!
//! `after` counts from the start of the simulation; `release` limits the fault to the update of the
//! operator to that release and its time there. `package` names an Operator instead of a
//! ClusterOperator; `version` limits the fault to Deployments with an image of that tag.

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

/// How the operator of a bundle goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageFaultKind {
    /// Its Deployments do not become available.
    NeverAvailable,
    /// It does not remove its finalizer from objects that are being deleted.
    KeepsFinalizers,
}

/// A fault of the operator of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageFault {
    /// Name of the Operator.
    pub package: String,
    /// What goes wrong.
    pub fault: PackageFaultKind,
    /// When it begins, from the start of the simulation.
    pub after: Duration,
    /// The tag of images that it is limited to; `None` for all.
    pub version: Option<String>,
}

/// The faults of a simulation; none by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    /// Those of the operators of releases.
    pub operators: Vec<ScriptedFault>,
    /// Those of the operators of bundles.
    pub packages: Vec<PackageFault>,
}

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
    /// It names both a ClusterOperator and a package, or neither.
    #[error(
        "fault {fault} names {given}: it is of an `operator` (a ClusterOperator) or of a `package`"
    )]
    Subject {
        /// The fault.
        fault: String,
        /// What it names.
        given: &'static str,
    },
    /// The fault is none of a package's, or has a field that theirs do not have.
    #[error(
        "package `{package}` cannot have fault {fault}: there are NeverAvailable and \
         KeepsFinalizers, with `after` and `version`"
    )]
    NotOfPackages {
        /// The package.
        package: String,
        /// The fault.
        fault: String,
    },
    /// The fault is none of a ClusterOperator's, or has a field that theirs do not have.
    #[error(
        "operator `{operator}` cannot have fault {fault}: there are NeverAvailable, Degraded, \
         VersionStuck and NotUpgradeable, with `after`, `release` and, for Degraded, `minutes`"
    )]
    NotOfOperators {
        /// The operator.
        operator: String,
        /// The fault.
        fault: String,
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
struct FaultEntry {
    operator: Option<String>,
    package: Option<String>,
    fault: Name,
    minutes: Option<f64>,
    #[serde(default, deserialize_with = "duration")]
    after: Duration,
    release: Option<String>,
    version: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
enum Name {
    NeverAvailable,
    Degraded,
    VersionStuck,
    NotUpgradeable,
    KeepsFinalizers,
}

impl Faults {
    /// Parses a list of faults.
    ///
    /// # Errors
    ///
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, FaultError> {
        let options = serde_saphyr::options! { with_snippet: false };
        let entries: Vec<FaultEntry> = serde_saphyr::from_str_with_options(text, options)
            .map_err(|source| FaultError::Parse { source: Box::new(source) })?;
        let mut faults = Self::default();
        for entry in entries {
            match (entry.operator.clone(), entry.package.clone()) {
                (Some(operator), None) => faults.operators.push(entry.of_operator(operator)?),
                (None, Some(package)) => faults.packages.push(entry.of_package(package)?),
                (operator, _) => {
                    let given = if operator.is_some() { "both" } else { "nothing" };
                    let fault = format!("{:?}", entry.fault);
                    return Err(FaultError::Subject { fault, given });
                }
            }
        }
        Ok(faults)
    }

    /// Checks that every operator and release that is named exists. Packages need not: they may be
    /// installed later.
    ///
    /// # Errors
    ///
    /// Names the first that does not.
    pub fn check(&self, operators: &BTreeSet<&str>, releases: &[String]) -> Result<(), FaultError> {
        for scripted in &self.operators {
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

impl FaultEntry {
    fn of_operator(self, operator: String) -> Result<ScriptedFault, FaultError> {
        let Self { operator: _, package: _, fault: name, minutes, after, release, version } = self;
        let refused =
            |operator| FaultError::NotOfOperators { operator, fault: format!("{name:?}") };
        let fault = match (name, minutes) {
            (Name::Degraded, None) => return Err(FaultError::MinutesMissing { operator }),
            (Name::Degraded, Some(minutes)) => {
                let Ok(lasts) = Duration::try_from_secs_f64(minutes * MINUTE) else {
                    return Err(FaultError::Minutes { operator, minutes });
                };
                Fault::Degraded { lasts }
            }
            (Name::KeepsFinalizers, _) => return Err(refused(operator)),
            (_, Some(_)) => return Err(FaultError::MinutesUnused { operator }),
            (Name::NeverAvailable, None) => Fault::NeverAvailable,
            (Name::VersionStuck, None) => Fault::VersionStuck,
            (Name::NotUpgradeable, None) => Fault::NotUpgradeable,
        };
        if version.is_some() {
            return Err(refused(operator));
        }
        Ok(ScriptedFault { operator, fault, after, release })
    }

    fn of_package(self, package: String) -> Result<PackageFault, FaultError> {
        let Self { operator: _, package: _, fault: name, minutes, after, release, version } = self;
        let fault = match name {
            Name::NeverAvailable => Some(PackageFaultKind::NeverAvailable),
            Name::KeepsFinalizers => Some(PackageFaultKind::KeepsFinalizers),
            Name::Degraded | Name::VersionStuck | Name::NotUpgradeable => None,
        };
        match fault {
            Some(fault) if minutes.is_none() && release.is_none() => {
                Ok(PackageFault { package, fault, after, version })
            }
            _ => Err(FaultError::NotOfPackages { package, fault: format!("{name:?}") }),
        }
    }
}

fn duration<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    plimsoll_api::duration::parse(&text).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests;
