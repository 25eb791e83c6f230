//! What a catalog says of a package, ready to be asked: as it lies in an [`CatalogIndex`](super::CatalogIndex).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::defect::invalidates_package;
use super::record::Text;
use crate::diagnostic::Diagnostic;

/// A package with everything that belongs to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedPackage<'a> {
    /// Its name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// The channel that is taken when none is named; empty if it is not known.
    #[serde(borrow)]
    pub default_channel: Text<'a>,
    /// What it is, in its author's words.
    #[serde(borrow)]
    pub description: Text<'a>,
    /// Why the package is deprecated, if it is.
    #[serde(borrow)]
    pub deprecated: Option<Text<'a>>,
    /// Its channels, by name.
    #[serde(borrow)]
    pub channels: Vec<IndexedChannel<'a>>,
    /// Its bundles, the highest version first; those whose version cannot be read come last.
    #[serde(borrow)]
    pub bundles: Vec<IndexedBundle<'a>>,
    /// The APIs that bundles refer to.
    #[serde(borrow)]
    pub apis: Vec<IndexedApi<'a>>,
    /// The requirements that bundles refer to.
    #[serde(borrow)]
    pub requirements: Vec<IndexedRequirement<'a>>,
    /// The descriptions that bundles refer to.
    #[serde(borrow)]
    pub details: Vec<BundleDetails<'a>>,
    /// Properties that are not known here and that a CEL rule may ask for; bundles refer to them.
    #[serde(borrow)]
    pub properties: Vec<IndexedProperty<'a>>,
    /// What is wrong with it, in the order of the catalog's files.
    pub defects: Vec<Diagnostic>,
    /// Whether nothing of it can be used, because of its defects.
    pub invalid: bool,
}

impl<'a> IndexedPackage<'a> {
    /// The channel of a name.
    pub fn channel(&self, name: &str) -> Option<&IndexedChannel<'a>> {
        self.channels.iter().find(|channel| &*channel.name == name)
    }

    /// The bundle of a name.
    pub fn bundle(&self, name: &str) -> Option<&IndexedBundle<'a>> {
        self.bundles.iter().find(|bundle| &*bundle.name == name)
    }

    /// The bundle at the head of the default channel: what is installed unless more is requested.
    pub fn default_bundle(&self) -> Option<&IndexedBundle<'a>> {
        let head = self.channel(&self.default_channel)?.head()?;
        self.bundles.get(head.bundle? as usize)
    }

    /// Why nothing of it can be used, if so.
    pub fn invalid_because(&self) -> Option<&str> {
        let mut defects = self.defects.iter().filter(|_| self.invalid);
        defects.find(|it| invalidates_package(it)).map(|it| it.message.as_str())
    }

    /// The APIs that a bundle provides.
    pub fn provided<'b>(
        &'b self,
        bundle: &'b IndexedBundle<'a>,
    ) -> impl Iterator<Item = &'b IndexedApi<'a>> {
        pick(&self.apis, &bundle.provided)
    }

    /// What a bundle requires.
    pub fn required<'b>(
        &'b self,
        bundle: &'b IndexedBundle<'a>,
    ) -> impl Iterator<Item = &'b IndexedRequirement<'a>> {
        pick(&self.requirements, &bundle.required)
    }

    /// The properties of a bundle that are not known here.
    pub fn others<'b>(
        &'b self,
        bundle: &'b IndexedBundle<'a>,
    ) -> impl Iterator<Item = &'b IndexedProperty<'a>> {
        pick(&self.properties, &bundle.properties)
    }

    /// What a bundle says of itself.
    pub fn details<'b>(&'b self, bundle: &'b IndexedBundle<'a>) -> Option<&'b BundleDetails<'a>> {
        self.details.get(bundle.details as usize)
    }
}

fn pick<'b, T>(table: &'b [T], indices: &'b [u32]) -> impl Iterator<Item = &'b T> {
    indices.iter().filter_map(|index| table.get(*index as usize))
}

/// A channel: entries with edges between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedChannel<'a> {
    /// Its name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// Its entries as they are written.
    #[serde(borrow)]
    pub entries: Vec<IndexedEntry<'a>>,
    /// Indices of entries from the head along `replaces`, without those that another one skips;
    /// or why there is no such order (RES-3.4).
    pub order: Result<Vec<u32>, ChannelError>,
    /// Why it is deprecated, if it is.
    #[serde(borrow)]
    pub deprecated: Option<Text<'a>>,
}

impl<'a> IndexedChannel<'a> {
    /// Its head: what is installed afresh.
    pub fn head(&self) -> Option<&IndexedEntry<'a>> {
        let first = self.order.as_ref().ok()?.first()?;
        self.entries.get(*first as usize)
    }

    /// Its entries in their order; none when it has no order.
    pub fn ordered(&self) -> impl Iterator<Item = &IndexedEntry<'a>> {
        pick(&self.entries, self.order.as_deref().unwrap_or_default())
    }
}

/// A bundle in a channel, and from which bundles one may update to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedEntry<'a> {
    /// Name of the bundle.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// CatalogIndex of the bundle in the package; `None` when the package does not have it.
    pub bundle: Option<u32>,
    /// Name of the bundle that it replaces.
    #[serde(borrow)]
    pub replaces: Option<Text<'a>>,
    /// Names of the bundles that it skips.
    #[serde(borrow)]
    pub skips: Vec<Text<'a>>,
    /// Range of versions that one may update from, if it can be read (blang).
    #[serde(borrow)]
    pub skip_range: Option<Text<'a>>,
}

/// Why the entries of a channel have no order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum ChannelError {
    /// It has no entries.
    #[error("it has no entries")]
    Empty,
    /// Every entry is replaced or skipped by another.
    #[error("it has no head: every entry is replaced or skipped by another")]
    NoHead,
    /// Several entries are replaced by none.
    #[error("it has several heads: {}", shortened(.0))]
    Heads(Vec<String>),
    /// `replaces` leads back to where it began.
    #[error("its entries replace each other in a circle: {}", shortened(.0))]
    Cycle(Vec<String>),
    /// An entry occurs twice.
    #[error("the entry {0} occurs twice")]
    Twice(String),
}

/// At most eight names, and how many more there are.
pub(super) fn shortened<T: AsRef<str>>(names: &[T]) -> String {
    const SHOWN: usize = 8;
    let list = |names: &[T]| names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => list(names),
        Some(more) => format!("{} and {more} more", list(&names[..SHOWN])),
    }
}

/// A version of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedBundle<'a> {
    /// Its name.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// Its version, strictly semantic unless the bundle is invalid.
    #[serde(borrow)]
    pub version: Text<'a>,
    /// What orders bundles of one version; empty if there is nothing.
    #[serde(borrow)]
    pub release: Text<'a>,
    /// Where its content lies.
    #[serde(borrow)]
    pub image: Text<'a>,
    /// Why it is deprecated, if it is; it can still be chosen.
    #[serde(borrow)]
    pub deprecated: Option<Text<'a>>,
    /// Whether it carries the property `olm.deprecated`: it may not be chosen.
    pub withdrawn: bool,
    /// Why it cannot be chosen, if something in it is malformed.
    #[serde(borrow)]
    pub invalid: Option<Text<'a>>,
    /// Highest version of OpenShift that a cluster may be updated to while it is installed,
    /// `major.minor`.
    #[serde(borrow)]
    pub maximum_open_shift: Option<Text<'a>>,
    /// Labels that it provides.
    #[serde(borrow)]
    pub labels: Vec<Text<'a>>,
    /// Indices into [`IndexedPackage::apis`].
    pub provided: Vec<u32>,
    /// Indices into [`IndexedPackage::requirements`].
    pub required: Vec<u32>,
    /// Indices into [`IndexedPackage::properties`].
    pub properties: Vec<u32>,
    /// CatalogIndex into [`IndexedPackage::details`].
    pub details: u32,
}

/// An API: group, version and kind, letter by letter.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IndexedApi<'a> {
    /// The group; empty for the core group.
    #[serde(borrow)]
    pub group: Text<'a>,
    /// The version, such as `v1beta1`.
    #[serde(borrow)]
    pub version: Text<'a>,
    /// The kind, such as `EtcdCluster`.
    #[serde(borrow)]
    pub kind: Text<'a>,
}

impl fmt::Display for IndexedApi<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} {}", self.group, self.version, self.kind)
    }
}

/// What a bundle needs of one other bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IndexedRequirement<'a> {
    /// An API.
    #[serde(borrow)]
    Api(IndexedApi<'a>),
    /// A package in a range of versions.
    #[serde(borrow)]
    Package(IndexedPackageRange<'a>),
    /// A label.
    #[serde(borrow)]
    Label(Text<'a>),
    /// Whatever `olm.constraint` says.
    #[serde(borrow)]
    Constraint(IndexedConstraint<'a>),
}

impl fmt::Display for IndexedRequirement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api(api) => write!(f, "API {api}"),
            Self::Package(package) => write!(f, "package {package}"),
            Self::Label(label) => write!(f, "label {label}"),
            Self::Constraint(constraint) => constraint.fmt(f),
        }
    }
}

/// A package in a range of versions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IndexedPackageRange<'a> {
    /// Name of the package.
    #[serde(borrow)]
    pub name: Text<'a>,
    /// Range of versions (blang).
    #[serde(borrow)]
    pub range: Text<'a>,
}

impl fmt::Display for IndexedPackageRange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.range)
    }
}

/// A predicate over one bundle, and what to say when none fulfils it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IndexedConstraint<'a> {
    /// What its author wants to be said when it is not fulfilled; may be empty.
    #[serde(borrow)]
    pub message: Text<'a>,
    /// The predicate.
    #[serde(borrow)]
    pub rule: IndexedRule<'a>,
}

impl fmt::Display for IndexedConstraint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule.fmt(f)
    }
}

/// A predicate over one bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum IndexedRule<'a> {
    /// It provides an API.
    #[serde(borrow)]
    Api(IndexedApi<'a>),
    /// It is of a package and in a range.
    #[serde(borrow)]
    Package(IndexedPackageRange<'a>),
    /// All members hold; true when there are none.
    #[serde(borrow)]
    All(Vec<IndexedConstraint<'a>>),
    /// A member holds; false when there are none.
    #[serde(borrow)]
    Any(Vec<IndexedConstraint<'a>>),
    /// No member holds; true when there are none.
    #[serde(borrow)]
    Not(Vec<IndexedConstraint<'a>>),
    /// A CEL expression over the bundle's `properties`.
    #[serde(borrow)]
    Cel(Text<'a>),
}

impl fmt::Display for IndexedRule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, word: &str, members: &[IndexedConstraint<'_>]| {
            write!(f, "{word}(")?;
            for (index, member) in members.iter().enumerate() {
                write!(f, "{}{member}", if index == 0 { "" } else { "; " })?;
            }
            f.write_str(")")
        };
        match self {
            Self::Api(api) => write!(f, "API {api}"),
            Self::Package(package) => write!(f, "package {package}"),
            Self::All(members) => list(f, "all", members),
            Self::Any(members) => list(f, "any", members),
            Self::Not(members) => list(f, "none", members),
            Self::Cel(rule) => write!(f, "rule {rule}"),
        }
    }
}

/// What a bundle says of itself; mostly the same for every version.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BundleDetails<'a> {
    /// Its name for people.
    #[serde(borrow)]
    pub display_name: Text<'a>,
    /// What it is, in a sentence.
    #[serde(borrow)]
    pub description: Text<'a>,
    /// Who provides it.
    #[serde(borrow)]
    pub provider: Text<'a>,
    /// Where it may be installed; `None` when it does not say.
    pub install_modes: Option<InstallModes>,
    /// Lowest version of Kubernetes that it runs on; empty if it does not say.
    #[serde(borrow)]
    pub minimum_kubernetes: Text<'a>,
    /// APIs that the cluster must serve itself.
    #[serde(borrow)]
    pub native_apis: Vec<IndexedApi<'a>>,
    /// Architectures that it runs on; empty if it does not say.
    #[serde(borrow)]
    pub architectures: Vec<Text<'a>>,
    /// Capabilities that must be enabled in the cluster.
    #[serde(borrow)]
    pub capabilities: Vec<Text<'a>>,
}

/// The install modes that a bundle supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InstallModes {
    /// It may watch its own namespace.
    pub own_namespace: bool,
    /// It may watch one other namespace.
    pub single_namespace: bool,
    /// It may watch several namespaces.
    pub multi_namespace: bool,
    /// It may watch all namespaces.
    pub all_namespaces: bool,
}

impl InstallModes {
    /// The names of the modes that are supported.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        [
            (self.own_namespace, "OwnNamespace"),
            (self.single_namespace, "SingleNamespace"),
            (self.multi_namespace, "MultiNamespace"),
            (self.all_namespaces, "AllNamespaces"),
        ]
        .into_iter()
        .filter_map(|(supported, name)| supported.then_some(name))
    }
}

/// A property that is not known here.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IndexedProperty<'a> {
    /// Its type.
    #[serde(borrow)]
    pub kind: Text<'a>,
    /// Its value, as JSON.
    #[serde(borrow)]
    pub value: Text<'a>,
}
