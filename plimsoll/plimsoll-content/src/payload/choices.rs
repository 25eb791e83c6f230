//! The cluster profiles and feature sets that a payload has manifests for: a name that none of them
//! has would leave everything out of a cluster, or add nothing to it.

use std::collections::BTreeSet;

use super::Payload;
use crate::capability::{meant, most_similar};
use crate::inclusion::{
    DEFAULT_PROFILE, FEATURE_SET, FEATURE_SETS, INCLUDE_PREFIX, is_for_any_profile,
};

/// A cluster profile or a feature set that a payload does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "release {version} has no {kind} {name:?}{}; it has {}",
    meant(.similar.as_deref()), list(.known)
)]
pub struct UnknownChoice {
    /// Version of the release.
    pub version: String,
    /// `profile` or `feature set`.
    pub kind: &'static str,
    /// The name, as it was given.
    pub name: String,
    /// The closest name that exists; `None` when none is close.
    pub similar: Option<String>,
    /// The names that exist, sorted.
    pub known: Vec<String>,
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

impl Payload {
    /// The cluster profiles that any manifest names.
    pub fn profiles(&self) -> BTreeSet<&str> {
        let keys = self.manifests.iter().flat_map(|manifest| manifest.annotations.keys());
        keys.filter_map(|key| key.strip_prefix(INCLUDE_PREFIX)).collect()
    }

    /// The feature sets that clusters may have, and others that any manifest names.
    pub fn feature_sets(&self) -> BTreeSet<&str> {
        let named = self.manifests.iter().filter_map(|it| it.annotations.get(FEATURE_SET));
        let named = named.flat_map(|sets| sets.split(',')).map(str::trim);
        named.filter(|set| !set.is_empty()).chain(FEATURE_SETS).collect()
    }

    /// Checks that the payload has manifests for a cluster profile. If it has some that are for any, the
    /// default profile will do, too, and every name if no manifest names a profile.
    ///
    /// # Errors
    ///
    /// When no manifest names the profile.
    pub fn check_profile(&self, name: &str) -> Result<(), UnknownChoice> {
        let mut known = self.profiles();
        if self.manifests.iter().any(is_for_any_profile) {
            if known.is_empty() {
                return Ok(());
            }
            known.insert(DEFAULT_PROFILE);
        }
        self.check_choice("profile", name, &known)
    }

    /// Checks that a feature set exists; the empty one is the default set.
    ///
    /// # Errors
    ///
    /// When it is none of those that clusters may have and no manifest names it.
    pub fn check_feature_set(&self, name: &str) -> Result<(), UnknownChoice> {
        match name {
            "" => Ok(()),
            name => self.check_choice("feature set", name, &self.feature_sets()),
        }
    }

    fn check_choice(
        &self,
        kind: &'static str,
        name: &str,
        known: &BTreeSet<&str>,
    ) -> Result<(), UnknownChoice> {
        if known.contains(name) {
            return Ok(());
        }
        Err(UnknownChoice {
            version: self.release.version.clone(),
            kind,
            name: name.to_owned(),
            similar: most_similar(name, known.iter().copied()).map(str::to_owned),
            known: known.iter().map(|name| (*name).to_owned()).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    //! Which names a payload knows, and what is said of others.

    use serde_json::json;

    use crate::Manifest;
    use crate::capability::CapabilityRegistry;
    use crate::payload::{Payload, ReleaseInfo, UnknownChoice};

    /// A payload with one manifest of each of some annotations.
    fn payload(annotations: &[(&str, &str)]) -> Payload {
        let manifest = |(key, value): &(&str, &str)| {
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "a", "annotations": {*key: value}},
            });
            Manifest::read("0000_10_a_b.yaml".into(), 0, &object).expect("a manifest")
        };
        Payload {
            release: ReleaseInfo { version: "1.0.0".to_owned(), ..ReleaseInfo::default() },
            manifests: annotations.iter().map(manifest).collect(),
            digest: String::new(),
            image: String::new(),
            warnings: Vec::new(),
            capabilities: CapabilityRegistry::built_in(),
        }
    }

    fn check(result: Result<(), UnknownChoice>, expected: &str) {
        let said = result.map_or_else(|error| error.to_string(), |()| String::new());
        assert_eq!(said, expected);
    }

    #[test]
    fn profiles_are_those_that_manifests_name() {
        let known = payload(&[
            ("include.release.openshift.io/self-managed-high-availability", "true"),
            ("include.release.openshift.io/single-node-developer", "true"),
        ]);
        let list = "it has self-managed-high-availability, single-node-developer";
        check(known.check_profile("single-node-developer"), "");
        check(
            known.check_profile("single-node-develper"),
            &format!(
                "release 1.0.0 has no profile \"single-node-develper\", did you mean \
                 \"single-node-developer\"?; {list}"
            ),
        );
        check(
            known.check_profile("nosuch"),
            &format!("release 1.0.0 has no profile \"nosuch\"; {list}"),
        );
        check(known.check_profile(""), &format!("release 1.0.0 has no profile \"\"; {list}"));
        let none = payload(&[]);
        check(
            none.check_profile("single-node-developer"),
            "release 1.0.0 has no profile \"single-node-developer\"; it has none",
        );
    }

    #[test]
    fn a_payload_for_any_profile_knows_every_name_unless_it_names_some() {
        let for_any = |annotations: &[(&str, &str)]| {
            let mut payload = payload(annotations);
            payload.manifests.iter_mut().for_each(|manifest| manifest.any_profile = true);
            payload
        };
        check(for_any(&[("a", "b")]).check_profile("nosuch"), "");
        let edge = ("include.release.openshift.io/edge", "true");
        let some = for_any(&[("a", "b"), edge]);
        for name in ["edge", "self-managed-high-availability"] {
            check(some.check_profile(name), "");
        }
        check(
            some.check_profile("egde"),
            "release 1.0.0 has no profile \"egde\", did you mean \"edge\"?; it has edge, \
             self-managed-high-availability",
        );
        check(
            for_any(&[edge]).check_profile("nosuch"),
            "release 1.0.0 has no profile \"nosuch\"; it has edge",
        );
    }

    #[test]
    fn feature_sets_are_those_of_clusters_and_of_manifests() {
        let known = payload(&[("release.openshift.io/feature-set", "Default, Harbour")]);
        for name in ["", "Default", "TechPreviewNoUpgrade", "Harbour"] {
            check(known.check_feature_set(name), "");
        }
        check(
            known.check_feature_set("techpreviewnoupgrade"),
            "release 1.0.0 has no feature set \"techpreviewnoupgrade\", did you mean \
             \"TechPreviewNoUpgrade\"?; it has CustomNoUpgrade, Default, DevPreviewNoUpgrade, \
             Harbour, OKD, TechPreviewNoUpgrade",
        );
    }
}
