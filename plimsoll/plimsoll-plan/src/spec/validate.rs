//! What is wrong with a ClusterVersion's spec (CV-17).
//!
//! Part of this is also in the CustomResourceDefinition; but a payload brings its own, and a spec
//! that passed an older one may be there already.

use std::collections::BTreeSet;
use std::fmt;

use plimsoll_api::config::{ClusterVersionSpec, ClusterVersionStatus, Update};
use semver::Version;

/// Longest name of a DNS-1035 label.
const NAME_LENGTH_MAX: usize = 63;

/// A field that can be invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// `metadata.name`.
    Name,
    /// `spec.upstream`.
    Upstream,
    /// `spec.clusterID`.
    ClusterId,
    /// `spec.desiredUpdate`.
    DesiredUpdate,
    /// `spec.desiredUpdate.version`.
    DesiredVersion,
}

impl Field {
    fn path(self) -> &'static str {
        match self {
            Self::Name => "metadata.name",
            Self::Upstream => "spec.upstream",
            Self::ClusterId => "spec.clusterID",
            Self::DesiredUpdate => "spec.desiredUpdate",
            Self::DesiredVersion => "spec.desiredUpdate.version",
        }
    }
}

/// Something wrong with a ClusterVersion. Its `Display` is what the `Invalid` condition lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field that is invalid.
    pub field: Field,
    /// The value; `None` for one that is missing.
    pub value: Option<String>,
    /// What is wrong with it.
    pub message: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, message) = (self.field.path(), self.message);
        match &self.value {
            Some(value) => write!(f, "{path}: Invalid value: {value:?}: {message}"),
            None => write!(f, "{path}: Required value: {message}"),
        }
    }
}

/// Everything that is wrong with a ClusterVersion; the status tells which releases a version
/// without an image may mean.
pub fn cluster_version(
    name: &str,
    spec: &ClusterVersionSpec,
    status: &ClusterVersionStatus,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut check = |field, value: &str, problem: Option<&'static str>| {
        violations.extend(problem.map(|message| Violation {
            field,
            value: Some(value.to_owned()),
            message,
        }));
    };
    check(Field::Name, name, name_problem(name));
    check(Field::Upstream, &spec.upstream, url_problem(&spec.upstream));
    check(Field::ClusterId, &spec.cluster_id, uuid_problem(&spec.cluster_id));
    if let Some(update) = &spec.desired_update {
        violations.extend(update_violation(update, status));
    }
    violations
}

/// The spec without what is invalid in it: what the controller acts on.
pub fn without_invalid(spec: &ClusterVersionSpec, violations: &[Violation]) -> ClusterVersionSpec {
    let mut spec = spec.clone();
    for violation in violations {
        match violation.field {
            Field::Name => {}
            Field::Upstream => spec.upstream.clear(),
            Field::ClusterId => spec.cluster_id.clear(),
            Field::DesiredUpdate | Field::DesiredVersion => spec.desired_update = None,
        }
    }
    spec
}

fn update_violation(update: &Update, status: &ClusterVersionStatus) -> Option<Violation> {
    let Update { architecture, version, image, force: _, accept_risks: _ } = update;
    if architecture.is_empty() && version.is_empty() && image.is_empty() {
        return Some(Violation {
            field: Field::DesiredUpdate,
            value: None,
            message: "must specify architecture, version, or image",
        });
    }
    let violation = |message| {
        Some(Violation { field: Field::DesiredVersion, value: Some(version.clone()), message })
    };
    if version.is_empty() {
        return None;
    }
    if Version::parse(version).is_err() {
        return violation("must be a semantic version (1.2.3[-...])");
    }
    if !image.is_empty() || !architecture.is_empty() {
        return None;
    }
    match candidates(version, status).len() {
        0 => violation("when image is empty the update must be an available update"),
        1 => None,
        _ => violation(
            "there are multiple possible payloads for this version, specify the exact image",
        ),
    }
}

/// The images that a version may mean: of the available updates, of the release that is applied,
/// or else of the history.
fn candidates<'a>(version: &str, status: &'a ClusterVersionStatus) -> BTreeSet<&'a str> {
    let available: BTreeSet<&str> = status
        .available_updates
        .iter()
        .flatten()
        .filter(|release| release.version == version)
        .map(|release| release.image.as_str())
        .collect();
    if !available.is_empty() {
        return available;
    }
    if status.desired.version == version && !status.desired.image.is_empty() {
        return BTreeSet::from([status.desired.image.as_str()]);
    }
    let known = |entry: &&plimsoll_api::config::UpdateHistory| {
        entry.version == version && !entry.image.is_empty()
    };
    status.history.iter().find(known).map(|entry| entry.image.as_str()).into_iter().collect()
}

fn name_problem(name: &str) -> Option<&'static str> {
    let valid = name.len() <= NAME_LENGTH_MAX
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    (!valid).then_some(
        "must consist of lower case letters, digits and hyphens, start with a letter, end with a \
         letter or digit, and have at most 63 characters",
    )
}

/// A URL is either absent or has a scheme and a host and no characters that no URL has.
fn url_problem(url: &str) -> Option<&'static str> {
    let valid = url.is_empty()
        || url.split_once("://").is_some_and(|(scheme, rest)| {
            let letters = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.bytes().all(letters)
                && !rest.is_empty()
                && !rest.starts_with('/')
                && !rest.bytes().any(|b| b.is_ascii_control() || b == b' ')
        });
    (!valid).then_some("must be a valid URL or empty")
}

fn uuid_problem(id: &str) -> Option<&'static str> {
    if id.is_empty() {
        return None;
    }
    let groups: Vec<&str> = id.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let is_uuid = lengths == [8, 4, 4, 4, 12]
        && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if !is_uuid || !groups[3].starts_with(['8', '9', 'a', 'b', 'A', 'B']) {
        return Some("must be an RFC4122-variant UUID");
    }
    (!groups[2].starts_with('4')).then_some("must be a version-4 UUID")
}

#[cfg(test)]
mod tests;
