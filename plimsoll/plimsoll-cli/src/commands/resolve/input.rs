//! From a command line to a problem.

use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use plimsoll_content::expressions::Cel;
use plimsoll_content::yaml;
use plimsoll_resolve::{
    Api, Bundle, BundleExclusion, CatalogName, ChannelPolicy, ClusterFacts, FollowedChannel,
    InstalledBundle, OperatorGroup, PackageRequest, Problem, ProviderChoice, Query,
    ResolutionOverrides, collect_problem,
};
use plimsoll_source::bounded::{WRITTEN_SIZE_MAX, read_text};
use serde::Deserialize;

use super::sources::Named;
use super::{ResolveArguments, cluster_version};

/// What is installed, as people write it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct InstalledItem {
    package: String,
    version: String,
    /// The channel that it follows; without one it stays as it is.
    channel: Option<String>,
    /// The catalog that it follows; any without one.
    catalog: Option<String>,
    namespace: Option<String>,
}

/// What is known of a cluster, as people write it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Cluster {
    kubernetes: Option<String>,
    openshift: Option<String>,
    apis: Option<Vec<Api>>,
    capabilities: Option<Vec<String>>,
    architectures: Vec<String>,
    operator_groups: Vec<OperatorGroup>,
    global_namespaces: Vec<String>,
}

impl Cluster {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or has another form.
    pub(crate) fn read(path: &Path) -> Result<Self, anyhow::Error> {
        let context = || format!("failed to read cluster facts from `{}`", path.display());
        let text = read_text(path, WRITTEN_SIZE_MAX).with_context(context)?;
        yaml::read(&text).with_context(context)
    }

    /// The facts, without what is only known of namespaces.
    ///
    /// # Errors
    ///
    /// When a version is none.
    pub(crate) fn facts(&self) -> Result<ClusterFacts, anyhow::Error> {
        Ok(ClusterFacts {
            kubernetes: self.kubernetes.as_deref().map(cluster_version).transpose()?,
            openshift: self.openshift.as_deref().map(cluster_version).transpose()?,
            apis: self.apis.clone(),
            capabilities: self.capabilities.clone(),
            architectures: self.architectures.clone(),
        })
    }
}

/// What is known of the cluster; what the command line says beats what the file does.
fn cluster(arguments: &ResolveArguments) -> Result<Cluster, anyhow::Error> {
    let path = arguments.cluster.as_deref();
    let mut cluster = path.map(Cluster::read).transpose()?.unwrap_or_default();
    if arguments.kubernetes.is_some() {
        cluster.kubernetes.clone_from(&arguments.kubernetes);
    }
    Ok(cluster)
}

pub(super) fn collected(
    arguments: &ResolveArguments,
    sources: &[Named<'_>],
) -> Result<Problem, anyhow::Error> {
    let cluster = cluster(arguments)?;
    let query = Query {
        facts: cluster.facts()?,
        operator_groups: cluster.operator_groups,
        global_namespaces: cluster.global_namespaces,
        installed: installed(arguments, sources)?,
        requests: requests(arguments, sources)?,
        channels: if arguments.any_channel {
            ChannelPolicy::PreferDefault
        } else {
            ChannelPolicy::DefaultOnly
        },
        overrides: overrides(arguments, sources)?,
    };
    let sources: Vec<_> = sources.iter().map(|named| named.source).collect();
    Ok(collect_problem(&sources, query, &Cel))
}

/// A request for each package that is named, and for those of the bundles; what a bundle's
/// directory contains is not taken from anywhere else.
fn requests(
    arguments: &ResolveArguments,
    sources: &[Named<'_>],
) -> Result<Vec<PackageRequest>, anyhow::Error> {
    let bundles: Vec<(&str, CatalogName)> = sources
        .iter()
        .filter(|named| named.is_bundle)
        .flat_map(|named| {
            let name = |package| (package, catalog_name(named));
            named.source.catalog.packages().into_iter().map(name)
        })
        .collect();
    let mut packages: Vec<&str> = arguments.packages.iter().map(String::as_str).collect();
    packages.extend(bundles.iter().map(|(package, _)| *package));
    packages.sort_unstable();
    packages.dedup();
    if packages.is_empty() {
        bail!("no package is given: name one, or a bundle with `--bundle`");
    }
    let request = |package: &str| PackageRequest {
        namespace: arguments.namespace.clone(),
        package: package.to_owned(),
        channel: arguments.channel.clone(),
        version: arguments.version.clone(),
        catalog: bundles.iter().find(|(name, _)| *name == package).map(|(_, name)| name.clone()),
        ignore_dependencies: arguments.no_dependencies,
        ..PackageRequest::default()
    };
    Ok(packages.into_iter().map(request).collect())
}

fn catalog_name(named: &Named<'_>) -> CatalogName {
    let (namespace, name) = (named.source.namespace.to_owned(), named.source.name.to_owned());
    CatalogName { namespace, name }
}

fn catalog_called(name: &str, sources: &[Named<'_>]) -> Result<CatalogName, anyhow::Error> {
    let called = |named: &&Named<'_>| {
        let is_whole = named.source.name == name;
        is_whole || catalog_name(named).to_string() == name
    };
    let mut found = sources.iter().filter(called);
    match (found.next(), found.next()) {
        (Some(named), None) => Ok(catalog_name(named)),
        (None, _) => Err(anyhow!("no catalog is named `{name}`")),
        _ => Err(anyhow!("several catalogs are named `{name}`: qualify it as NAMESPACE/{name}")),
    }
}

fn installed(
    arguments: &ResolveArguments,
    sources: &[Named<'_>],
) -> Result<Vec<InstalledBundle>, anyhow::Error> {
    let Some(path) = &arguments.installed else { return Ok(Vec::new()) };
    let context = || format!("failed to read installed packages from `{}`", path.display());
    let items = read_installed(path).with_context(context)?;
    let item = |item: InstalledItem| -> Result<InstalledBundle, anyhow::Error> {
        let InstalledItem { package, version, channel, catalog, namespace } = item;
        let catalog = catalog.map(|name| catalog_called(&name, sources)).transpose()?;
        Ok(InstalledBundle {
            namespace: namespace.unwrap_or_else(|| arguments.namespace.clone()),
            follows: channel.map(|channel| FollowedChannel { channel, catalog }),
            catalog: None,
            ignore_dependencies: false,
            bundle: known_bundle(&package, &version, sources)?,
            package: Some(package),
        })
    };
    items.into_iter().map(item).collect::<Result<_, _>>().with_context(context)
}

fn read_installed(path: &Path) -> Result<Vec<InstalledItem>, anyhow::Error> {
    Ok(yaml::read(&read_text(path, WRITTEN_SIZE_MAX)?)?)
}

/// What a catalog knows of an installed bundle; when none knows it, that it is there.
fn known_bundle(
    package: &str,
    version: &str,
    sources: &[Named<'_>],
) -> Result<Bundle, anyhow::Error> {
    let version = cluster_version(version)?;
    for named in sources {
        let Some(found) = named.source.catalog.package(package) else { continue };
        if let Some(mut bundle) = found.bundles.into_iter().find(|it| it.version == version) {
            let properties = named.source.catalog.properties(package, &bundle.name);
            bundle.properties = properties.unwrap_or_default();
            return Ok(bundle);
        }
    }
    Ok(Bundle::new(format!("{package}.v{version}"), version))
}

fn overrides(
    arguments: &ResolveArguments,
    sources: &[Named<'_>],
) -> Result<ResolutionOverrides, anyhow::Error> {
    let exclusion = |text: &String| {
        let (package, bundle) = match text.split_once('/') {
            Some((package, bundle)) => (package, Some(bundle.to_owned())),
            None => (text.as_str(), None),
        };
        BundleExclusion { package: package.to_owned(), versions: None, bundle }
    };
    let provider = |text: &String| -> Result<ProviderChoice, anyhow::Error> {
        let wrong = || anyhow!("`{text}` is not of the form GROUP/VERSION/KIND=PACKAGE");
        let (api, package) = text.split_once('=').ok_or_else(wrong)?;
        let parts: Vec<&str> = api.split('/').collect();
        let [group, version, kind] = parts.as_slice() else { return Err(wrong()) };
        if kind.is_empty() || package.is_empty() {
            return Err(wrong());
        }
        Ok(ProviderChoice {
            api: Api {
                group: (*group).to_owned(),
                version: (*version).to_owned(),
                kind: (*kind).to_owned(),
            },
            package: package.to_owned(),
            catalog: None,
        })
    };
    Ok(ResolutionOverrides {
        exclude: arguments.exclude.iter().map(exclusion).collect(),
        providers: arguments.provider.iter().map(provider).collect::<Result<_, _>>()?,
        prefer_catalogs: arguments
            .prefer
            .iter()
            .map(|name| catalog_called(name, sources))
            .collect::<Result<_, _>>()?,
    })
}
