//! What an index offers to the resolver.

use std::cell::OnceCell;

use plimsoll_resolve as resolve;
use plimsoll_resolve::version::parse_strict;
use semver::Version;
use serde_json::{Value, json};

use super::defect::invalidates_package;
use super::index::{CatalogIndex, IndexError, IndexStorage};
use super::model::{
    BundleDetails, IndexedApi, IndexedBundle, IndexedChannel, IndexedConstraint, IndexedPackage,
    IndexedPackageRange, IndexedRequirement, IndexedRule, InstallModes,
};
use super::record::Text;

/// An index as a catalog that the resolver asks.
///
/// The resolver knows no failures: a package that cannot be read is as if it were not there. Ask
/// for [`IndexedCatalog::failure`] after a resolution, and build the index anew if there is one.
pub struct IndexedCatalog<'i, S> {
    index: &'i CatalogIndex<S>,
    failure: OnceCell<IndexError>,
}

impl<'i, S: IndexStorage> IndexedCatalog<'i, S> {
    /// The offer of an index.
    pub fn new(index: &'i CatalogIndex<S>) -> Self {
        Self { index, failure: OnceCell::new() }
    }

    /// The first failure to read a package, if there was one: no answer since then counts.
    pub fn failure(&self) -> Option<&IndexError> {
        self.failure.get()
    }

    fn read<T>(&self, name: &str, make: impl FnOnce(&IndexedPackage<'_>) -> T) -> Option<T> {
        let read = || -> Result<Option<T>, IndexError> {
            let Some(block) = self.index.package(name)? else { return Ok(None) };
            Ok(Some(make(&block.read()?)))
        };
        read().unwrap_or_else(|error| {
            let _ = self.failure.set(error);
            None
        })
    }
}

impl<S: IndexStorage> resolve::Catalog for IndexedCatalog<'_, S> {
    fn package(&self, name: &str) -> Option<resolve::Package> {
        self.read(name, package)
    }

    fn providers(&self, api: &resolve::Api) -> Vec<&str> {
        self.index.providers(&api.group, &api.version, &api.kind)
    }

    fn labelled(&self, label: &str) -> Vec<&str> {
        self.index.labelled(label)
    }

    fn packages(&self) -> Vec<&str> {
        self.index.package_names().collect()
    }

    fn package_with_properties(&self, name: &str) -> Option<resolve::Package> {
        self.read(name, |read| {
            let mut found = package(read);
            for (bundle, indexed) in found.bundles.iter_mut().zip(&read.bundles) {
                bundle.properties = properties(read, indexed);
            }
            found
        })
    }

    fn properties(&self, package: &str, bundle: &str) -> Option<Vec<resolve::Property>> {
        self.read(package, |package| {
            package.bundle(bundle).map(|bundle| properties(package, bundle))
        })?
    }
}

fn package(package: &IndexedPackage<'_>) -> resolve::Package {
    let default = &package.default_channel;
    resolve::Package {
        name: package.name.to_string(),
        default_channel: (!default.is_empty()).then(|| default.to_string()),
        deprecation: package.deprecated.as_ref().map(Text::to_string),
        channels: package.channels.iter().map(channel).collect(),
        bundles: package.bundles.iter().map(|it| bundle(package, it)).collect(),
    }
}

fn channel(channel: &IndexedChannel<'_>) -> resolve::Channel {
    let entry = |entry: &super::IndexedEntry<'_>| resolve::ChannelEntry {
        name: entry.name.to_string(),
        replaces: entry.replaces.as_ref().map(Text::to_string),
        skips: entry.skips.iter().map(Text::to_string).collect(),
        skip_range: entry.skip_range.as_ref().map(Text::to_string),
    };
    resolve::Channel {
        name: channel.name.to_string(),
        deprecation: channel.deprecated.as_ref().map(Text::to_string),
        entries: channel.entries.iter().map(entry).collect(),
    }
}

fn bundle(package: &IndexedPackage<'_>, from: &IndexedBundle<'_>) -> resolve::Bundle {
    let version = parse_strict(&from.version).unwrap_or(Version::new(0, 0, 0));
    let mut bundle = resolve::Bundle::new(from.name.to_string(), version);
    bundle.provides = package.provided(from).map(api).collect();
    bundle.requires = package.required(from).map(requirement).collect();
    bundle.labels = from.labels.iter().map(Text::to_string).collect();
    bundle.max_openshift_version = from.maximum_open_shift.as_ref().map(Text::to_string);
    bundle.deprecated = from.withdrawn;
    bundle.deprecation = from.deprecated.as_ref().map(Text::to_string);
    bundle.defects = from.invalid.iter().map(Text::to_string).collect();
    if package.invalid {
        let errors = package.defects.iter().filter(|it| invalidates_package(it));
        bundle.defects.extend(errors.map(|it| format!("package {}: {}", package.name, it.message)));
    }
    if let Some(details) = package.details(from) {
        describe(&mut bundle, details);
    }
    bundle
}

fn describe(bundle: &mut resolve::Bundle, details: &BundleDetails<'_>) {
    let minimum = &details.minimum_kubernetes;
    bundle.install_modes = details.install_modes.map(modes);
    bundle.min_kube_version = (!minimum.is_empty()).then(|| minimum.to_string());
    bundle.native_apis = details.native_apis.iter().map(api).collect();
    bundle.architectures = details.architectures.iter().map(Text::to_string).collect();
    bundle.capabilities = details.capabilities.iter().map(Text::to_string).collect();
}

fn modes(modes: InstallModes) -> Vec<resolve::InstallMode> {
    use resolve::InstallMode::{AllNamespaces, MultiNamespace, OwnNamespace, SingleNamespace};
    [
        (modes.own_namespace, OwnNamespace),
        (modes.single_namespace, SingleNamespace),
        (modes.multi_namespace, MultiNamespace),
        (modes.all_namespaces, AllNamespaces),
    ]
    .into_iter()
    .filter_map(|(supported, mode)| supported.then_some(mode))
    .collect()
}

fn api(api: &IndexedApi<'_>) -> resolve::Api {
    resolve::Api {
        group: api.group.to_string(),
        version: api.version.to_string(),
        kind: api.kind.to_string(),
    }
}

fn requirement(requirement: &IndexedRequirement<'_>) -> resolve::Requirement {
    match requirement {
        IndexedRequirement::Api(it) => resolve::Constraint::Api(api(it)).into(),
        IndexedRequirement::Package(it) => range(it).into(),
        IndexedRequirement::Label(label) => resolve::Constraint::Label(label.to_string()).into(),
        IndexedRequirement::Constraint(it) => constraint(it),
    }
}

fn range(range: &IndexedPackageRange<'_>) -> resolve::Constraint {
    resolve::Constraint::Package { name: range.name.to_string(), range: range.range.to_string() }
}

fn constraint(from: &IndexedConstraint<'_>) -> resolve::Requirement {
    let members = |members: &[IndexedConstraint<'_>]| members.iter().map(constraint).collect();
    resolve::Requirement {
        message: (!from.message.is_empty()).then(|| from.message.to_string()),
        constraint: match &from.rule {
            IndexedRule::Api(it) => resolve::Constraint::Api(api(it)),
            IndexedRule::Package(it) => range(it),
            IndexedRule::All(list) => resolve::Constraint::All(members(list)),
            IndexedRule::Any(list) => resolve::Constraint::Any(members(list)),
            IndexedRule::Not(list) => resolve::Constraint::Not(members(list)),
            IndexedRule::Cel(rule) => resolve::Constraint::Cel { rule: rule.to_string() },
        },
    }
}

/// All properties of a bundle that rules may look at, as a catalog writes them.
fn properties(package: &IndexedPackage<'_>, bundle: &IndexedBundle<'_>) -> Vec<resolve::Property> {
    let property = |kind: &str, value: Value| resolve::Property { kind: kind.to_owned(), value };
    let mut identity = json!({ "packageName": &package.name, "version": &bundle.version });
    if !bundle.release.is_empty() {
        identity["release"] = bundle.release.as_str().into();
    }
    let mut all = vec![property("olm.package", identity)];
    all.extend(package.provided(bundle).map(|it| property("olm.gvk", written_api(it))));
    all.extend(package.required(bundle).map(|it| match it {
        IndexedRequirement::Api(it) => property("olm.gvk.required", written_api(it)),
        IndexedRequirement::Package(it) => property("olm.package.required", written_range(it)),
        IndexedRequirement::Label(it) => property("olm.label.required", json!({ "label": it })),
        IndexedRequirement::Constraint(it) => property("olm.constraint", written_constraint(it)),
    }));
    all.extend(bundle.labels.iter().map(|it| property("olm.label", json!({ "label": it }))));
    if bundle.withdrawn {
        all.push(property("olm.deprecated", json!({})));
    }
    all.extend(
        package
            .others(bundle)
            .map(|it| property(&it.kind, serde_json::from_str(&it.value).unwrap_or_default())),
    );
    all
}

fn written_api(api: &IndexedApi<'_>) -> Value {
    json!({ "group": &api.group, "kind": &api.kind, "version": &api.version })
}

fn written_range(range: &IndexedPackageRange<'_>) -> Value {
    json!({ "packageName": &range.name, "versionRange": &range.range })
}

fn written_constraint(constraint: &IndexedConstraint<'_>) -> Value {
    let members = |list: &[IndexedConstraint<'_>]| json!({ "constraints": list.iter().map(written_constraint).collect::<Vec<_>>() });
    let mut written = match &constraint.rule {
        IndexedRule::Api(it) => json!({ "gvk": written_api(it) }),
        IndexedRule::Package(it) => json!({ "package": written_range(it) }),
        IndexedRule::All(list) => json!({ "all": members(list) }),
        IndexedRule::Any(list) => json!({ "any": members(list) }),
        IndexedRule::Not(list) => json!({ "not": members(list) }),
        IndexedRule::Cel(rule) => json!({ "cel": { "rule": rule } }),
    };
    if !constraint.message.is_empty() {
        written["failureMessage"] = constraint.message.as_str().into();
    }
    written
}
