//! What there is to say about one capability, as both commands say it.

use plimsoll_api::progress::ImpliedCapability;
use plimsoll_content::inclusion::capability_names;
use serde::Serialize;

use crate::arguments::capability::Subject;

/// A capability, as it is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Description<'a> {
    pub(crate) name: &'a str,
    pub(crate) description: &'a str,
    pub(crate) enabled: bool,
    /// Enabled although the spec does not ask for it; unknown without a cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) implicit: Option<bool>,
    /// What made it necessary, if an update did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) implied_by: Option<&'a ImpliedCapability>,
    pub(crate) sets: Vec<&'a str>,
    pub(crate) requires: &'a [String],
    pub(crate) feature_gates: &'a [String],
    /// The file of the release that declares it; none for one of the published API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) declared_in: Option<&'a str>,
    /// How many manifests belong to it, included or not; unknown without a release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) manifests: Option<usize>,
}

impl<'a> Description<'a> {
    pub(crate) fn of(name: &'a str, subject: &'a Subject) -> Self {
        let known = subject.registry.capability(name);
        let cluster = subject.cluster.as_ref();
        let sets = subject.registry.sets().iter().filter(|set| set.capabilities.contains(name));
        let manifests = subject.payload.as_ref().map(|payload| {
            let belongs = |names: Vec<&str>| names.contains(&name);
            let all = payload.manifests.iter().map(|it| capability_names(&it.annotations));
            all.filter(|names| belongs(names.clone())).count()
        });
        Self {
            name,
            description: known.map_or("", |it| &it.description),
            enabled: subject.enabled.contains(name),
            implicit: cluster.map(|cluster| cluster.implicit.contains(name)),
            implied_by: cluster.and_then(|cluster| cluster.implied(name)),
            sets: sets.map(|set| set.name.as_str()).collect(),
            requires: known.map_or(&[], |it| &it.requires),
            feature_gates: known.map_or(&[], |it| &it.gates),
            declared_in: known.and_then(|it| it.declared.as_deref()),
            manifests,
        }
    }

    /// `yes`, `no`, or `implicit` for what is not requested.
    pub(crate) fn state(&self) -> &'static str {
        match (self.enabled, self.implicit) {
            (true, Some(true)) => "implicit",
            (true, _) => "yes",
            (false, _) => "no",
        }
    }
}
