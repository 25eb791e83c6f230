//! Inspected content: what an Operator may be installed with, because its permissions were looked at.

use std::collections::BTreeMap;

use plimsoll_api::olm::BundleReference;
use plimsoll_api::olm::action::{INSPECTED_ANNOTATION, PlannedChange};
use serde::{Deserialize, Serialize};

use super::planner::is_pinned;

/// The value of the annotation [`INSPECTED_ANNOTATION`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InspectedContent {
    /// The requested version for which it holds.
    pub version: String,
    /// The digest of the content of each bundle that may be installed, by `CATALOG/NAME`.
    pub bundles: BTreeMap<String, String>,
}

impl InspectedContent {
    /// Returns what was inspected for a change; `None` if nothing was, or it requests a range, which later versions are
    /// in as well.
    pub fn of(change: &PlannedChange) -> Option<Self> {
        let (version, bundles) = (change.requested.clone(), change.inspected.clone());
        (!bundles.is_empty() && is_pinned(&version)).then_some(Self { version, bundles })
    }

    /// Returns the key of a bundle.
    pub fn key(bundle: &BundleReference) -> String {
        format!("{}/{}", bundle.catalog, bundle.name)
    }
}

/// The annotation [`INSPECTED_ANNOTATION`] of an Operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Inspection {
    /// What was inspected.
    Content(InspectedContent),
    /// It cannot be read: why.
    Invalid(String),
}

impl Inspection {
    /// Reads the annotation.
    pub(crate) fn read(annotation: &str) -> Self {
        match serde_json::from_str(annotation) {
            Ok(content) => Self::Content(content),
            Err(error) => Self::Invalid(error.to_string()),
        }
    }

    /// Returns whether it is about an Operator that requests a version.
    pub(crate) fn is_for(&self, requested: &str) -> bool {
        match self {
            Self::Content(content) => content.version == requested,
            Self::Invalid(_) => true,
        }
    }

    /// Returns it with the content of a bundle that is installed, which may be applied again.
    pub(crate) fn with_installed(mut self, bundle: &BundleReference) -> Self {
        if let Self::Content(content) = &mut self {
            let key = InspectedContent::key(bundle);
            content.bundles.entry(key).or_insert_with(|| bundle.digest.clone());
        }
        self
    }

    /// Returns why the content of a bundle may not be installed; `None` if it may.
    pub(crate) fn problem(&self, bundle: &BundleReference) -> Option<String> {
        let content = match self {
            Self::Content(content) => content,
            Self::Invalid(why) => {
                return Some(format!(
                    "the annotation {INSPECTED_ANNOTATION} cannot be read: {why}; correct or remove it"
                ));
            }
        };
        let found = content.bundles.get(&InspectedContent::key(bundle));
        let difference = match found {
            Some(digest) if *digest == bundle.digest => return None,
            Some(digest) => format!("its content is {}, not the {digest}", bundle.digest),
            None => "it is none of the bundles".to_owned(),
        };
        Some(format!(
            "{difference} that an Action inspected before it requested version {}: have catalog {} serve \
             that again, request another version, or remove the annotation {INSPECTED_ANNOTATION} of the Operator to \
             install this one",
            content.version, bundle.catalog
        ))
    }
}

#[cfg(test)]
mod tests {
    //! Which content may be installed after an inspection.

    use serde_json::json;

    use super::*;

    fn bundle(name: &str, digest: &str) -> BundleReference {
        let [catalog, name, digest] = ["main", name, digest].map(str::to_owned);
        BundleReference { catalog, name, digest, ..BundleReference::default() }
    }

    #[test]
    fn what_was_inspected_may_be_installed_and_nothing_else() {
        let bundles = json!({ "main/foo.v1.0.0": "sha256:a", "main/foo.v1.1.0": "sha256:b" });
        let annotation = json!({ "version": "1.1.0", "bundles": bundles }).to_string();
        let check = |annotation: &str, requested: &str, name: &str, digest: &str, part: &str| {
            let inspection = Some(Inspection::read(annotation)).filter(|it| it.is_for(requested));
            let problem = inspection.and_then(|it| it.problem(&bundle(name, digest)));
            assert_eq!(problem.is_some(), !part.is_empty(), "{problem:?}");
            assert!(problem.unwrap_or_default().contains(part), "{requested} {name} {digest}");
        };
        check(&annotation, "1.1.0", "foo.v1.1.0", "sha256:b", "");
        check(&annotation, "1.1.0", "foo.v1.0.0", "sha256:a", "");
        check(
            &annotation,
            "1.1.0",
            "foo.v1.1.0",
            "sha256:c",
            "its content is sha256:c, not the sha256:b",
        );
        check(&annotation, "1.1.0", "foo.v1.1.0-b", "sha256:b", "it is none of the bundles");
        // The administrator has requested another version since.
        check(&annotation, "1.2.0", "foo.v1.2.0", "sha256:c", "");
        check(&annotation, ">=1.0.0", "foo.v1.1.0", "sha256:c", "");
        check("x", "1.2.0", "foo.v1.2.0", "sha256:c", "cannot be read");
        let installed = bundle("foo.v0.9.0", "sha256:d");
        let inspection = Inspection::read(&annotation);
        assert!(inspection.problem(&installed).is_some());
        assert_eq!(inspection.with_installed(&installed).problem(&installed), None);
        // Other content of a version that is installed was inspected since.
        let installed = bundle("foo.v1.1.0", "sha256:d");
        let inspection = Inspection::read(&annotation).with_installed(&installed);
        assert!(inspection.problem(&installed).is_some());
    }

    #[test]
    fn ranges_are_left_to_the_catalog() {
        let of = |requested: &str, inspected: &[&str]| {
            let inspected = inspected.iter().map(|it| ((*it).to_owned(), "sha256:a".to_owned()));
            let (requested, inspected) = (requested.to_owned(), inspected.collect());
            InspectedContent::of(&PlannedChange {
                requested,
                inspected,
                ..PlannedChange::default()
            })
        };
        assert_eq!(of("1.0.0", &["main/foo"]).map(|it| it.version).as_deref(), Some("1.0.0"));
        assert_eq!(of("1.0.0", &[]), None);
        assert_eq!(of(">=1.0.0", &["main/foo"]), None);
    }
}
