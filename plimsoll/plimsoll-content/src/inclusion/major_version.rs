//! The major-version annotation: which major versions of the content a manifest is for.

use std::collections::BTreeSet;

use super::{ExclusionReason, MAJOR_VERSION};
use crate::Manifest;

/// The kinds that may carry the annotation.
const KINDS: [(&str, &str); 2] =
    [("apiextensions.k8s.io", "CustomResourceDefinition"), ("config.openshift.io", "FeatureGate")];

/// Why a major-version annotation cannot be honoured; the manifest is then left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MajorVersionError {
    /// The kind may not carry the annotation.
    #[error("{MAJOR_VERSION} is only allowed on CustomResourceDefinition and FeatureGate")]
    Kind,
    /// An item is not a number.
    #[error("invalid major version {item:?} in {MAJOR_VERSION}={value}")]
    NotANumber {
        /// The item.
        item: String,
        /// The whole annotation.
        value: String,
    },
    /// A version is both included and excluded.
    #[error("major version {version} is both included and excluded by {MAJOR_VERSION}={value}")]
    Overlap {
        /// The version.
        version: u64,
        /// The whole annotation.
        value: String,
    },
}

/// The reason to leave a manifest out of a release of that major version.
pub(super) fn exclusion(manifest: &Manifest, version: u64) -> Option<ExclusionReason> {
    let value = manifest.annotations.get(MAJOR_VERSION)?;
    match includes(manifest, value, version) {
        Ok(true) => None,
        Ok(false) => Some(ExclusionReason::MajorVersion { version, value: value.clone() }),
        Err(problem) => Some(ExclusionReason::InvalidMajorVersion(problem)),
    }
}

/// Why the annotation of a manifest cannot be honoured.
pub(crate) fn problem(manifest: &Manifest) -> Option<MajorVersionError> {
    includes(manifest, manifest.annotations.get(MAJOR_VERSION)?, 0).err()
}

fn includes(manifest: &Manifest, value: &str, version: u64) -> Result<bool, MajorVersionError> {
    let key = &manifest.key;
    if !KINDS.contains(&(key.group.as_str(), key.kind.as_str())) {
        return Err(MajorVersionError::Kind);
    }
    let mut included = BTreeSet::new();
    let mut excluded = BTreeSet::new();
    for item in value.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (set, digits) = match item.strip_prefix('-') {
            Some(digits) => (&mut excluded, digits),
            None => (&mut included, item),
        };
        let number = digits.parse().map_err(|_| MajorVersionError::NotANumber {
            item: item.to_owned(),
            value: value.to_owned(),
        })?;
        set.insert(number);
    }
    if let Some(version) = included.intersection(&excluded).next() {
        return Err(MajorVersionError::Overlap { version: *version, value: value.to_owned() });
    }
    if excluded.contains(&version) {
        return Ok(false);
    }
    Ok(included.is_empty() || included.contains(&version))
}
