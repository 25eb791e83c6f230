//! Objects that earlier releases applied and the release no longer mentions.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plimsoll_api::progress::Orphan;
use plimsoll_content::Manifest;
use plimsoll_content::inclusion::Exclusion;
use plimsoll_model::ObjectKey;

use crate::plan::{Action, Plan};

/// Annotation of the ClusterVersion: the orphans to delete, as ReleaseProgress names them,
/// separated by commas, or [`PRUNE_ALL`].
pub const PRUNE: &str = "plimsoll.io/prune";
/// Value of [`PRUNE`]: every orphan that there is.
pub const PRUNE_ALL: &str = "all";

/// Which orphans are to be deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Prune {
    /// None: they stay until somebody asks.
    #[default]
    None,
    /// Every one.
    All,
    /// These, as ReleaseProgress names them.
    Named(BTreeSet<String>),
}

impl Prune {
    /// Reads the annotation's value.
    pub fn parse(value: Option<&str>) -> Self {
        match value.map(str::trim) {
            None | Some("") => Self::None,
            Some(PRUNE_ALL) => Self::All,
            Some(names) => {
                Self::Named(names.split(',').map(|name| name.trim().to_owned()).collect())
            }
        }
    }

    /// Those of `orphans` that are to go, the last applied first: the reverse of the order in which
    /// they came (design 001).
    pub fn select(&self, orphans: &[Orphan]) -> Vec<Orphan> {
        let mut selected: Vec<Orphan> =
            orphans.iter().filter(|orphan| self.includes(orphan)).cloned().collect();
        selected.sort_by(|a, b| b.file.cmp(&a.file).then_with(|| a.object.cmp(&b.object)));
        selected
    }

    fn includes(&self, orphan: &Orphan) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Named(names) => names.contains(&orphan.object.to_string()),
        }
    }
}

/// What is left behind when `next` follows `outgoing`: those of before that are still not
/// mentioned, and what the outgoing plan applied and the next one does not.
///
/// What is left out because an override says so is no orphan: somebody else looks after it.
pub fn orphans(before: &[Orphan], outgoing: &Plan, next: &Plan, now: Timestamp) -> Vec<Orphan> {
    let kept: BTreeSet<&ObjectKey> = next.steps.iter().map(|step| &step.manifest.key).collect();
    let excluded: BTreeMap<&ObjectKey, &Exclusion> =
        next.excluded.iter().map(|it| (&it.key, &it.reason)).collect();
    let is_left = |key: &ObjectKey| {
        !kept.contains(key) && !matches!(excluded.get(key), Some(Exclusion::Overridden))
    };
    let mut all: BTreeMap<ObjectKey, Orphan> = before
        .iter()
        .map(|orphan| (orphan.object.clone(), orphan.clone()))
        .filter(|(key, _)| is_left(key))
        .collect();
    for step in &outgoing.steps {
        let key = &step.manifest.key;
        let was_applied = matches!(step.action, Action::Apply | Action::CreateOnly | Action::Gate);
        if was_applied && is_left(key) {
            let next_version = &next.release.version;
            let why = match excluded.get(key) {
                Some(exclusion) => format!("left out of release {next_version}: {exclusion}"),
                None => format!("not in release {next_version}"),
            };
            all.entry(key.clone()).or_insert_with(|| {
                let Manifest { file, version, .. } = &step.manifest;
                Orphan::new(key, version, file, &outgoing.release.version, &why, now)
            });
        }
    }
    all.into_values().collect()
}
