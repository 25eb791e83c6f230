//! Loadouts: directories of Operators, and the state that they are checked against.

mod content;
mod files;
mod header;
mod installed;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context as _, bail};
use clap::Args;
use kube::Client;
use plimsoll_api::olm::{
    BundleReference, CHANGE_SET_ANNOTATION, INSTALLED_AS_DEPENDENCY, INSTALLED_AS_LABEL,
    INSTALLED_AS_USER, OperatorRevisionSpec,
};
use plimsoll_api::{Operator, OperatorRevision};
use plimsoll_content::catalog::IndexedCatalog;
use plimsoll_content::expressions::Cel;
use plimsoll_operators::loadout::Loadout;
use plimsoll_operators::manifest::OperatorManifest;
use plimsoll_operators::snapshot::{LoadoutSnapshot, SnapshotCatalog};
use plimsoll_operators::{InstalledOperator, RequestedOperator, installed_bundle};
use plimsoll_resolve::version::parse_tolerant;
use plimsoll_resolve::{
    Bundle, CatalogPart, CatalogSource, ClusterFacts, PackageRequest, Query, collect_problem,
};
use plimsoll_source::bounded::read_text;

pub(crate) use self::files::{read_files, read_revision};
use super::NO_CLUSTER;
use super::apply::OperatorWrite;
use super::catalogs::{CatalogChoice, OpenedCatalogs, or_without_cluster};
use super::cluster_resolver;
use super::state::{AddOnState, revisions, status};
use super::unreadable::UnreadableObjects;
use crate::arguments::name::{hint, suggestion};
use crate::commands::resolve::input::Cluster;
use crate::progress::ProgressLine;

/// The maximum size of a snapshot, in bytes.
const SNAPSHOT_SIZE_MAX: u64 = 1 << 30;

/// The source of the state that Operators are checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateSource {
    /// Files only: no request is sent to a cluster.
    Files,
    /// The cluster for its facts and for what is installed, and files for the set of Operators.
    Hybrid,
    /// The cluster for everything, with the changes that files make.
    Cluster,
    /// A file of `operator snapshot` for everything, with the changes that files make.
    Snapshot(PathBuf),
}

impl FromStr for StateSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "files" => Ok(Self::Files),
            "hybrid" => Ok(Self::Hybrid),
            "cluster" => Ok(Self::Cluster),
            path if Path::new(path).is_file() => Ok(Self::Snapshot(PathBuf::from(path))),
            other => Err(format!(
                "use files, hybrid, cluster, or a file that `operator snapshot` has printed{}",
                suggestion(other, ["files", "hybrid", "cluster"].into_iter())
            )),
        }
    }
}

impl fmt::Display for StateSource {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files => to.write_str("files"),
            Self::Hybrid => to.write_str("hybrid"),
            Self::Cluster => to.write_str("cluster"),
            Self::Snapshot(path) => write!(to, "{}", path.display()),
        }
    }
}

/// The options for the state that Operators are checked against.
#[derive(Debug, Clone, Args)]
pub struct StateArguments {
    /// Where the state comes from: files, hybrid (Operators from files, facts from the cluster), cluster,
    /// or a file that `operator snapshot` has printed
    #[arg(long, value_name = "SOURCE")]
    pub(super) state: Option<StateSource>,
    /// Facts of the cluster for --state files: a YAML or JSON file as for `plimsoll resolve --cluster`
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    #[command(flatten)]
    catalogs: CatalogChoice,
}

/// The state that Operators are checked against.
pub(crate) struct LoadoutState {
    pub(crate) source: StateSource,
    pub(crate) catalogs: OpenedCatalogs,
    pub(crate) facts: ClusterFacts,
    /// The Operators of the cluster; empty if the state does not come from one.
    in_cluster: BTreeMap<String, Operator>,
    /// What of the cluster cannot be read.
    unreadable: UnreadableObjects,
    revisions: Vec<OperatorRevision>,
    /// The snapshot; empty if the state does not come from one.
    snapshot: LoadoutSnapshot,
}

impl StateArguments {
    /// Returns whether the state can be read without a cluster, whatever catalogs are named.
    pub(super) fn needs_no_cluster(&self) -> bool {
        matches!(self.state, Some(StateSource::Files | StateSource::Snapshot(_)))
    }

    /// Returns whether the state of files is read without a cluster, whatever catalogs are named: facts stand
    /// for one.
    pub(super) fn is_without_cluster(&self) -> bool {
        self.needs_no_cluster() || (self.state.is_none() && self.facts.is_some())
    }

    /// Returns the catalogs with which the state can be read without a cluster; `None` if the
    /// command line names the source of the state.
    pub(super) fn catalogs(&self) -> Option<&CatalogChoice> {
        self.state.is_none().then_some(&self.catalogs)
    }

    /// Reads the state, from a cluster if a client is given, with the catalogs of some packages.
    ///
    /// # Errors
    ///
    /// When the cluster, a catalog or a file cannot be read, or there is no catalog.
    pub(crate) async fn read(
        &self,
        client: Option<&Client>,
        packages: &[String],
    ) -> Result<LoadoutState, anyhow::Error> {
        self.read_for(client, None, Some(packages)).await
    }

    /// Does the same as [`Self::read`], with another default for the source of the state. If `packages`, those
    /// needed beside the ones of the cluster's Operators, are known, the cluster's resolver may have the catalogs.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub(crate) async fn read_for(
        &self,
        client: Option<&Client>,
        otherwise: Option<StateSource>,
        packages: Option<&[String]>,
    ) -> Result<LoadoutState, anyhow::Error> {
        let usual = if client.is_some() { StateSource::Hybrid } else { StateSource::Files };
        let is_usual = self.state.is_none() && otherwise.is_none();
        let source = self.state.clone().or(otherwise).unwrap_or(usual);
        let facts = self.facts.as_deref().map(Cluster::read).transpose()?;
        let facts = facts.map(|it| it.facts()).transpose()?;
        if source == StateSource::Files {
            let catalogs = self.catalogs.open(&BTreeMap::new())?;
            catalogs.require_named()?;
            return Ok(LoadoutState {
                source,
                catalogs,
                facts: facts.unwrap_or_default(),
                in_cluster: BTreeMap::new(),
                unreadable: UnreadableObjects::default(),
                revisions: Vec::new(),
                snapshot: LoadoutSnapshot::default(),
            });
        }
        if facts.is_some() {
            bail!("--facts is for --state files: otherwise the cluster says what it is");
        }
        if let StateSource::Snapshot(path) = &source {
            if self.catalogs.is_named() {
                bail!("--catalog: the snapshot `{}` has its own catalogs", path.display());
            }
            let context = || format!("failed to read `{}`", path.display());
            let text = read_text(path, SNAPSHOT_SIZE_MAX).with_context(context)?;
            let snapshot = LoadoutSnapshot::read(&text).with_context(context)?;
            return Ok(LoadoutState {
                source,
                catalogs: OpenedCatalogs::default(),
                facts: snapshot.facts.clone(),
                in_cluster: BTreeMap::new(),
                unreadable: UnreadableObjects::default(),
                revisions: Vec::new(),
                snapshot,
            });
        }
        let client = client.context(NO_CLUSTER)?;
        let without = is_usual.then_some(&self.catalogs);
        let state = or_without_cluster(AddOnState::read(client).await, without)?;
        let mut catalogs = self.catalogs.open(&state.catalogs)?;
        let mut snapshot = LoadoutSnapshot::default();
        if let Some(packages) = packages {
            let choice = &self.catalogs;
            snapshot =
                cluster_resolver::read_in_place_of(&mut catalogs, choice, client, packages).await?;
        }
        if snapshot.catalogs.is_empty() {
            catalogs.require()?;
        }
        let progress = ProgressLine::begin("reading the version and nodes of the cluster");
        let facts = plimsoll_controller::operators::read_facts(client).await;
        drop(progress);
        let facts = facts.context("failed to read the version and nodes of the cluster");
        let facts = or_without_cluster(facts, without)?;
        let revisions = or_without_cluster(revisions(client).await, without)?;
        let AddOnState { operators: in_cluster, mut unreadable, .. } = state;
        if self.catalogs.is_named() {
            unreadable.forget_catalogs();
        }
        Ok(LoadoutState { source, catalogs, facts, in_cluster, unreadable, revisions, snapshot })
    }
}

impl LoadoutState {
    /// Returns the packages that can be reached from some names, by catalog.
    pub(crate) fn parts(&self, names: impl Iterator<Item = String>) -> Vec<CatalogPart> {
        let indexed: Vec<IndexedCatalog<'_, _>> =
            self.catalogs.opened.iter().map(|it| IndexedCatalog::new(&it.index)).collect();
        let sources = self.catalogs.opened.iter().zip(&indexed);
        let sources = sources.map(|(it, catalog)| CatalogSource {
            name: &it.name,
            namespace: "",
            weight: it.weight,
            catalog,
        });
        let kept = self.snapshot.catalogs.iter().map(SnapshotCatalog::source);
        let sources: Vec<CatalogSource<'_>> = sources.chain(kept).collect();
        let request = |package| PackageRequest { package, ..PackageRequest::default() };
        let query = Query { requests: names.map(request).collect(), ..Query::default() };
        collect_problem(&sources, query, &Cel).catalogs
    }

    /// Returns the catalogs that cannot be read, with the reason.
    pub(crate) fn unavailable(&self) -> BTreeMap<String, String> {
        let elsewhere = self.catalogs.elsewhere.iter();
        let why = |(name, path): &(String, PathBuf)| {
            (name.clone(), format!("`{}` cannot be read from here", path.display()))
        };
        let mut unavailable = self.snapshot.unavailable.clone();
        unavailable.extend(elsewhere.map(why));
        let unreadable = self.unreadable.catalogs().iter();
        unavailable.extend(
            unreadable.map(|(name, why)| (name.clone(), format!("it cannot be read: {why}"))),
        );
        unavailable
    }

    /// Fails if an Operator that cannot be read may have a part in a change of some packages: of theirs and
    /// those that they may require.
    ///
    /// # Errors
    ///
    /// When one may; the error names it and the field.
    pub(super) fn require_readable(
        &self,
        packages: impl Iterator<Item = String>,
    ) -> Result<(), anyhow::Error> {
        if self.unreadable.has_no_operators() {
            return Ok(());
        }
        let mut names: BTreeSet<String> = packages.collect();
        let parts = self.parts(names.iter().cloned());
        names.extend(parts.iter().flat_map(|it| &it.packages).map(|it| it.name.clone()));
        self.unreadable.require_no_part(&names)
    }

    /// Fails if no catalog has a package.
    ///
    /// # Errors
    ///
    /// When none has it (the error names similar packages), or one is damaged.
    pub(crate) fn require_package(&self, name: &str) -> Result<(), anyhow::Error> {
        let StateSource::Snapshot(path) = &self.source else {
            return match self.snapshot.catalogs.is_empty() {
                true => self.catalogs.with_package(name, |_, _| Ok(())),
                false => cluster_resolver::require_package(&self.snapshot, &self.catalogs, name),
            };
        };
        let packages = self.snapshot.catalogs.iter().flat_map(|it| &it.part.packages);
        let names: Vec<&str> = packages.map(|it| it.name.as_str()).collect();
        if !names.contains(&name) {
            bail!(
                "the snapshot `{}` has no package `{name}`{}; take it again with `operator snapshot {name}`",
                path.display(),
                hint(name, names.into_iter())
            );
        }
        Ok(())
    }

    fn image_of(&self, package: &str, bundle: &str, catalog: &str) -> Option<String> {
        if let Some(opened) = self.catalogs.opened.iter().find(|it| it.name == catalog) {
            let block = opened.index.package(package).ok()??;
            return Some(block.read().ok()?.bundle(bundle)?.image.to_string());
        }
        let kept = self.snapshot.catalogs.iter().find(|it| it.part.name.name == catalog)?;
        kept.images.get(bundle).cloned()
    }

    /// Returns everything that a resolution of some packages depends on, and everything that
    /// decisions about the Operators depend on.
    pub(crate) fn snapshot(&self, packages: &[String]) -> LoadoutSnapshot {
        let nothing = Loadout::default();
        let parts = self.parts(self.all_names(&nothing).chain(packages.iter().cloned()));
        let operators = self.operators(&nothing, &parts);
        let digest = |part: &CatalogPart| {
            let opened = self.catalogs.opened.iter().find(|it| it.name == part.name.name);
            let kept = self.snapshot.catalogs.iter().find(|it| it.part.name == part.name);
            let digest = opened.map(|it| &it.digest).or(kept.map(|it| &it.digest));
            digest.cloned().unwrap_or_default()
        };
        let catalogs = parts.into_iter().map(|part| {
            let (mut images, mut digests) = (BTreeMap::new(), BTreeMap::new());
            for package in &part.packages {
                for bundle in &package.bundles {
                    let name = bundle.name.clone();
                    let reference = BundleReference {
                        name: name.clone(),
                        catalog: part.name.name.clone(),
                        ..BundleReference::default()
                    };
                    // Of content that cannot be read, no digest is known.
                    let content = self.content(&package.name, &reference).unwrap_or_default();
                    if !content.digest.is_empty() && !content.image.contains('@') {
                        digests.insert(name.clone(), content.digest);
                    }
                    if !content.image.is_empty() {
                        images.insert(name, content.image);
                    }
                }
            }
            SnapshotCatalog { digest: digest(&part), images, digests, part }
        });
        let (facts, unavailable) = (self.facts.clone(), self.unavailable());
        LoadoutSnapshot::new(facts, operators, catalogs.collect(), unavailable)
    }

    /// Returns the names of the Operators of the files, and of the relevant Operators of the
    /// cluster.
    pub(crate) fn all_names(&self, loadout: &Loadout) -> impl Iterator<Item = String> {
        let declared = loadout.operators.iter().map(|it| it.name.clone());
        let kept = self.snapshot.operators.keys().cloned();
        declared.chain(self.counting(loadout).map(|(name, _)| name.clone())).chain(kept)
    }

    /// Returns an Operator of the cluster; `None` if it has none of this name.
    pub(super) fn in_cluster(&self, name: &str) -> Option<&Operator> {
        self.in_cluster.get(name)
    }

    /// Returns the OperatorRevisions of the cluster.
    pub(super) fn revisions(&self) -> &[OperatorRevision] {
        &self.revisions
    }

    /// Returns the writes of Operators to the cluster.
    pub(super) fn writes(&self, manifests: &[OperatorManifest]) -> Vec<OperatorWrite> {
        manifests.iter().map(|it| OperatorWrite::new(it, self.in_cluster.get(&it.name))).collect()
    }

    /// Returns the Operators of the files, and the relevant Operators of the cluster, each with its
    /// installed bundle.
    pub(crate) fn operators(
        &self,
        loadout: &Loadout,
        parts: &[CatalogPart],
    ) -> BTreeMap<String, RequestedOperator> {
        let mut operators = self.current(loadout, parts);
        for (name, mut operator) in loadout.requested() {
            if let Some(there) = operators.get(&name) {
                operator.installed.clone_from(&there.installed);
                operator.owned.clone_from(&there.owned);
            }
            operators.insert(name, operator);
        }
        operators
    }

    /// Returns what [`Self::operators`] returns, and, if the state is hybrid, the Operators of the cluster that the
    /// files do not declare: they count as installed, and are not changed.
    pub(super) fn operators_to_plan(
        &self,
        loadout: &Loadout,
        parts: &[CatalogPart],
    ) -> BTreeMap<String, RequestedOperator> {
        let mut operators = self.operators(loadout, parts);
        for (name, operator) in self.undeclared(loadout) {
            let requested = self.requested(name, operator, parts);
            let requested = RequestedOperator { is_undeclared: true, ..requested };
            operators.insert(name.clone(), requested);
        }
        operators
    }

    /// Returns the names of the Operators that a plan concerns.
    pub(super) fn names_to_plan(&self, loadout: &Loadout) -> impl Iterator<Item = String> {
        let undeclared = self.undeclared(loadout).map(|(name, _)| name.clone());
        self.all_names(loadout).chain(undeclared)
    }

    fn undeclared(&self, loadout: &Loadout) -> impl Iterator<Item = (&String, &Operator)> {
        let is_hybrid = self.source == StateSource::Hybrid;
        let operators = self.in_cluster.iter().filter(move |_| is_hybrid);
        operators.filter(move |(name, _)| loadout.operator(name).is_none())
    }

    fn counting(&self, loadout: &Loadout) -> impl Iterator<Item = (&String, &Operator)> {
        let is_whole = self.source == StateSource::Cluster;
        self.in_cluster.iter().filter(move |(name, _)| is_whole || loadout.operator(name).is_some())
    }

    /// Returns the relevant Operators of the cluster, each with its installed bundle. If the state
    /// is hybrid, those are the Operators that files declare.
    pub(crate) fn current(
        &self,
        loadout: &Loadout,
        parts: &[CatalogPart],
    ) -> BTreeMap<String, RequestedOperator> {
        let operators = self.counting(loadout);
        let operators = operators.map(|(name, it)| (name.clone(), self.requested(name, it, parts)));
        operators.chain(self.snapshot.operators.clone()).collect()
    }

    fn requested(
        &self,
        name: &str,
        operator: &Operator,
        parts: &[CatalogPart],
    ) -> RequestedOperator {
        let metadata = &operator.metadata;
        let text = |of: &Option<BTreeMap<String, String>>, key: &str| {
            of.as_ref().and_then(|it| it.get(key)).cloned()
        };
        let installed_as = text(&metadata.labels, INSTALLED_AS_LABEL);
        let installed_as = installed_as.as_deref();
        let requested = RequestedOperator {
            spec: operator.spec.clone(),
            created: metadata
                .creation_timestamp
                .as_ref()
                .map_or(jiff::Timestamp::UNIX_EPOCH, |it| it.0),
            is_dependency: installed_as == Some(INSTALLED_AS_DEPENDENCY),
            is_of_user: installed_as == Some(INSTALLED_AS_USER),
            is_undeclared: false,
            change_set: text(&metadata.annotations, CHANGE_SET_ANNOTATION),
            is_deleting: metadata.deletion_timestamp.is_some(),
            installed: None,
            returns_to: None,
            owned: BTreeSet::new(),
        };
        let status = status(operator);
        let (Some(reference), Some(revision)) = (status.bundle, status.revision) else {
            return requested;
        };
        let bundle = self.bundle(name, revision, &reference, parts);
        requested.with_installed(InstalledOperator {
            reference,
            bundle,
            revision,
            upgrade_block: None,
        })
    }

    /// Returns the installed bundle as its revision has it, or else as a catalog has it.
    fn bundle(
        &self,
        name: &str,
        revision: u32,
        reference: &BundleReference,
        parts: &[CatalogPart],
    ) -> Bundle {
        let mut kept = self.revisions.iter().map(|it| &it.spec);
        // Revisions of a deleted Operator of the same name may still exist.
        let is_it = |it: &&OperatorRevisionSpec| {
            it.operator == name && it.revision == revision && it.bundle.name == reference.name
        };
        if let Some(kept) = kept.find(is_it) {
            return installed_bundle(&reference.name, name, &kept.properties);
        }
        let packages = parts.iter().flat_map(|it| &it.packages).filter(|it| it.name == name);
        let listed = packages.flat_map(|it| &it.bundles).find(|it| it.name == reference.name);
        listed.cloned().unwrap_or_else(|| {
            let version = parse_tolerant(&reference.version);
            Bundle::new(&reference.name, version.unwrap_or(semver::Version::new(0, 0, 0)))
        })
    }
}
