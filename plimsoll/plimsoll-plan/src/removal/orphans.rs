//! Objects that earlier releases applied and the release no longer mentions.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plimsoll_api::progress::Orphan;
use plimsoll_api::{GroupKind, ObjectKey};
use plimsoll_content::Manifest;

use crate::forecast::{self, OrphanCause};
use crate::plan::{Action, Plan, Step};

/// Annotation of the ClusterVersion: the orphans to delete, as ReleaseProgress names them,
/// separated by commas, or [`PRUNE_ALL`]. The controller takes out the names of what is gone.
pub const PRUNE: &str = "plimsoll.io/prune";
/// Value of [`PRUNE`]: every orphan that there is.
pub const PRUNE_ALL: &str = "all";

/// Which orphans are to be deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Prune {
    /// None: they stay until their deletion is requested.
    #[default]
    None,
    /// Every one.
    All,
    /// These, as ReleaseProgress names them, each once.
    Named(BTreeSet<String>),
}

impl Prune {
    /// Reads the annotation's value.
    pub fn parse(value: Option<&str>) -> Self {
        match value.map(str::trim) {
            None | Some("") => Self::None,
            Some(PRUNE_ALL) => Self::All,
            Some(names) => {
                let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
                Self::named(names.map(str::to_owned).collect())
            }
        }
    }

    fn named(names: BTreeSet<String>) -> Self {
        if names.is_empty() { Self::None } else { Self::Named(names) }
    }

    /// Those of `orphans` that are to go, the last applied first: the reverse of the order in which
    /// they came (DEL-3).
    pub fn select(&self, orphans: &[Orphan]) -> Vec<Orphan> {
        let mut selected: Vec<Orphan> =
            orphans.iter().filter(|orphan| self.includes(orphan)).cloned().collect();
        selected.sort_by(|a, b| b.file.cmp(&a.file).then_with(|| a.object.cmp(&b.object)));
        selected
    }

    /// Takes note that an object is gone: a name is a request to delete it once. True if it was
    /// requested.
    pub fn carried_out(&mut self, object: &ObjectKey) -> bool {
        let Self::Named(names) = self else { return false };
        let was_requested = names.remove(&object.to_string());
        if names.is_empty() {
            *self = Self::None;
        }
        was_requested
    }

    /// The annotation's value; `None` for no annotation.
    pub fn annotation(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::All => Some(PRUNE_ALL.to_owned()),
            Self::Named(names) => Some(names.iter().cloned().collect::<Vec<_>>().join(",")),
        }
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
pub fn orphans(before: &[Orphan], outgoing: &Plan, next: &Plan, now: Timestamp) -> Vec<Orphan> {
    let was_applied =
        |step: &&Step| matches!(step.action, Action::Apply | Action::CreateOnly | Action::Gate);
    let applied: BTreeMap<&ObjectKey, &Step> =
        outgoing.steps.iter().filter(was_applied).map(|step| (&step.manifest.key, step)).collect();
    let known: BTreeMap<&ObjectKey, &Orphan> =
        before.iter().map(|orphan| (&orphan.object, orphan)).collect();
    let candidates: BTreeSet<&ObjectKey> = applied.keys().chain(known.keys()).copied().collect();
    let left = forecast::orphans(candidates.into_iter(), next, &BTreeSet::new());
    let of = |left: forecast::Orphan| match known.get(&left.key) {
        Some(known) => Some((*known).clone()),
        None => {
            let Manifest { file, version, .. } = &applied.get(&left.key)?.manifest;
            let why = why(&left.cause, next);
            Some(Orphan::new(&left.key, version, file, &outgoing.release.version, &why, now))
        }
    };
    left.into_iter().filter_map(of).collect()
}

/// What is left behind when `next` begins in a cluster that an earlier process brought to release
/// `version`, whose plan is not at hand: of the objects that are ours, each with its API version,
/// those that are not mentioned. `cluster_kinds` are the kinds known to have no namespace.
pub fn orphans_of_cluster(
    ours: &BTreeMap<ObjectKey, String>,
    version: &str,
    next: &Plan,
    cluster_kinds: &BTreeSet<GroupKind>,
    now: Timestamp,
) -> Vec<Orphan> {
    let left = forecast::orphans(ours.keys(), next, cluster_kinds);
    let of = |left: forecast::Orphan| {
        let api_version = ours.get(&left.key)?;
        Some(Orphan::new(&left.key, api_version, "", version, &why(&left.cause, next), now))
    };
    left.into_iter().filter_map(of).collect()
}

fn why(cause: &OrphanCause, next: &Plan) -> String {
    let version = &next.release.version;
    match cause {
        OrphanCause::Vanished => format!("not in release {version}"),
        OrphanCause::Excluded(exclusion) => format!("left out of release {version}: {exclusion}"),
    }
}
