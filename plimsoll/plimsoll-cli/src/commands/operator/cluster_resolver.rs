//! The cluster's resolver as the source of catalogs: what of them a plan depends on comes as a snapshot, and what is
//! looked up in them as an answer, by the API server's proxy to the Service, so that this machine needs no catalog
//! (OPR-21, OPR-22).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use http::{Request, StatusCode};
use k8s_openapi::api::core::v1::Service;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_content::catalog::{ApiProviders, IndexedPackage, PackageSummary, WantedApi};
use plimsoll_operators::snapshot::LoadoutSnapshot;
use serde::Deserialize;
use tokio::time::sleep;

use super::catalogs::{CatalogChoice, OpenedCatalogs};
use crate::arguments::resolver::{RESOLVER_LABEL, RESOLVER_LABELLED};
use crate::exit::chain;

/// How often a resolver is asked that is busy, or of which a replica answers that does not lead.
const ATTEMPTS: usize = 8;
/// How long to wait between two attempts.
const PAUSE: Duration = Duration::from_millis(250);
/// The maximum number of packages that the resolver is asked about since its catalogs do not have them.
const UNKNOWN_MAX: usize = 8;

/// The maximum size of the parameters of a request, in bytes: what is between this machine and the API server often
/// reads URLs of 8 KiB.
const QUERY_SIZE_MAX: usize = 6 << 10;
/// How often the catalogs are read that are changed between the requests for a snapshot.
const READINGS: usize = 3;

/// Returns the catalogs of a cluster that a plan for some packages depends on, in place of `catalogs`, if its
/// resolver is asked in their place. Otherwise the snapshot has no catalog.
///
/// # Errors
///
/// As [`ask_in_place_of`].
pub(super) async fn read_in_place_of(
    catalogs: &mut OpenedCatalogs,
    choice: &CatalogChoice,
    client: &Client,
    packages: &[String],
) -> Result<LoadoutSnapshot, anyhow::Error> {
    let read = async |resolver: &ClusterResolver| {
        let snapshot = resolver.snapshot(packages).await?;
        let unknown = resolver.unknown(&snapshot, packages).await;
        anyhow::Ok((snapshot, unknown))
    };
    let Some((mut snapshot, unknown)) = ask_in_place_of(catalogs, choice, client, read).await?
    else {
        return Ok(LoadoutSnapshot::default());
    };
    *catalogs = OpenedCatalogs { unknown, ..OpenedCatalogs::default() };
    // They are read from the API server.
    snapshot.operators.clear();
    Ok(snapshot)
}

/// Returns what the resolver of a cluster answers in place of `catalogs`: if the command line names none, some
/// cannot be read on this machine, and the cluster has a resolver. Otherwise `None`.
///
/// # Errors
///
/// When the resolver does not answer or it is not known which one is meant, and no catalog can be read on this
/// machine.
pub(super) async fn ask_in_place_of<T>(
    catalogs: &OpenedCatalogs,
    choice: &CatalogChoice,
    client: &Client,
    ask: impl AsyncFnOnce(&ClusterResolver) -> Result<T, anyhow::Error>,
) -> Result<Option<T>, anyhow::Error> {
    if choice.is_named() || catalogs.elsewhere.is_empty() {
        return Ok(None);
    }
    let answered = match ClusterResolver::find(client).await {
        Ok(None) => return Ok(None),
        Ok(Some(resolver)) => ask(&resolver).await,
        Err(error) => Err(error),
    };
    match answered {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if catalogs.opened.is_empty() => Err(error),
        Err(error) => {
            anstream::eprintln!("note: {}", chain(&error));
            Ok(None)
        }
    }
}

/// Returns what the resolver of a cluster says of an API; `None` if there is no resolver, or if it does not answer.
pub(super) async fn providers_in_cluster(client: &Client, api: &WantedApi) -> Option<ApiProviders> {
    let resolver = ClusterResolver::find(client).await.ok()??;
    resolver.providers(api).await.ok()
}

/// The resolver of a cluster.
pub(super) struct ClusterResolver {
    client: Client,
    /// The namespace of its Service.
    namespace: String,
    /// The name of its Service.
    name: String,
}

/// What a resolver has of a package.
enum FoundPackage {
    /// The package as each catalog has it, as JSON.
    Known(String),
    /// No catalog has it: the sentence that says so.
    Unknown(String),
}

impl ClusterResolver {
    /// Returns the resolver of a cluster; `None` if there is none, or Services may not be listed.
    ///
    /// # Errors
    ///
    /// When there are several: each says which packages there are.
    async fn find(client: &Client) -> Result<Option<Self>, anyhow::Error> {
        let services: Api<Service> = Api::all(client.clone());
        let label = format!("{RESOLVER_LABEL}={RESOLVER_LABELLED}");
        let Ok(listed) = services.list(&ListParams::default().labels(&label)).await else {
            return Ok(None);
        };
        let resolver = |it: Service| {
            let (namespace, name) = (it.namespace()?, it.name_any());
            Some(Self { client: client.clone(), namespace, name })
        };
        let mut found: Vec<Self> = listed.items.into_iter().filter_map(resolver).collect();
        if found.len() > 1 {
            let names = found.iter().map(|it| format!("{}/{}", it.namespace, it.name));
            let names: Vec<String> = names.collect();
            bail!(
                "several Services have the label {label}, and one of them is the cluster's resolver: {}; remove \
                 it from the others, or name copies of the catalogs with `--catalog NAME=FILE`",
                names.join(", ")
            );
        }
        Ok(found.pop())
    }

    /// Returns the answer at a path, or the error of the request.
    async fn request(&self, path: &str) -> Result<String, kube::Error> {
        let Self { client, namespace, name } = self;
        let path =
            &format!("/api/v1/namespaces/{namespace}/services/https:{name}:https/proxy/v1/{path}");
        let request = || Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError);
        for _ in 1..ATTEMPTS {
            match client.request_text(request()?).await {
                Err(kube::Error::Api(status)) if matches!(status.code, 429 | 503) => {
                    sleep(PAUSE).await;
                }
                answered => return answered,
            }
        }
        client.request_text(request()?).await
    }

    /// Returns the answer at a path.
    async fn ask(&self, path: &str) -> Result<String, anyhow::Error> {
        self.request(path).await.with_context(|| self.does_not_answer())
    }

    fn does_not_answer(&self) -> String {
        let Self { client: _, namespace, name } = self;
        format!(
            "the cluster's resolver, Service {namespace}/{name}, does not answer; name copies of its \
             catalogs with `--catalog NAME=FILE`"
        )
    }

    /// Returns the reason that an answer cannot be read.
    fn of_another_version(&self) -> String {
        let Self { client: _, namespace, name } = self;
        format!(
            "the resolver of Service {namespace}/{name} is of another version than this program"
        )
    }

    /// Returns everything that a resolution of some packages, and decisions on the Operators, depend on.
    async fn snapshot(&self, packages: &[String]) -> Result<LoadoutSnapshot, anyhow::Error> {
        let queries = snapshot_queries(packages);
        for _ in 0..READINGS {
            if let Some(snapshot) = self.joined(&queries).await? {
                return Ok(snapshot);
            }
        }
        bail!(
            "the cluster's catalogs change while they are read for {} packages: try again, or name copies of \
             them with `--catalog NAME=FILE`",
            packages.len()
        )
    }

    /// Returns the answers to some queries as one snapshot; `None` if the catalogs were changed in between.
    async fn joined(&self, queries: &[String]) -> Result<Option<LoadoutSnapshot>, anyhow::Error> {
        let mut joined: Option<LoadoutSnapshot> = None;
        for query in queries {
            let text = self.ask(&format!("snapshot?{query}")).await?;
            let snapshot =
                LoadoutSnapshot::read(&text).with_context(|| self.of_another_version())?;
            let Some(mut all) = joined.take() else {
                joined = Some(snapshot);
                continue;
            };
            if !all.join(snapshot) {
                return Ok(None);
            }
            joined = Some(all);
        }
        Ok(joined)
    }

    /// Returns the packages with texts that have some words.
    ///
    /// # Errors
    ///
    /// When it does not answer, or has another format.
    pub(super) async fn search(
        &self,
        words: &[String],
    ) -> Result<Vec<PackageSummary>, anyhow::Error> {
        // An empty word is in every text.
        let words: Vec<String> = words.iter().filter(|it| !it.is_empty()).cloned().collect();
        let text = self.ask(&format!("packages?{}", parameters("word", &words).join("&"))).await?;
        let list: PackageList =
            serde_json::from_str(&text).with_context(|| self.of_another_version())?;
        Ok(list.packages)
    }

    /// Returns the packages that provide an API.
    ///
    /// # Errors
    ///
    /// When it does not answer, or has another format.
    pub(super) async fn providers(&self, api: &WantedApi) -> Result<ApiProviders, anyhow::Error> {
        let api = utf8_percent_encode(&api.to_string(), NON_ALPHANUMERIC).to_string();
        let text = self.ask(&format!("providers?api={api}")).await?;
        serde_json::from_str(&text).with_context(|| self.of_another_version())
    }

    /// Calls a function with a package from the most preferred catalog that has it. The result is that of the
    /// function, or the error that no catalog has the package.
    ///
    /// # Errors
    ///
    /// When it does not answer, or has another format.
    pub(super) async fn with_package<T>(
        &self,
        name: &str,
        act: impl FnOnce(IndexedPackage<'_>) -> Result<T, anyhow::Error>,
    ) -> Result<Result<T, anyhow::Error>, anyhow::Error> {
        let text = match self.package(name).await? {
            FoundPackage::Known(text) => text,
            FoundPackage::Unknown(message) => return Ok(Err(anyhow!(message))),
        };
        let content: PackageContent<'_> =
            serde_json::from_str(&text).with_context(|| self.of_another_version())?;
        match content.catalogs.into_iter().next() {
            Some(first) => Ok(act(first.index)),
            None => bail!(self.of_another_version()),
        }
    }

    async fn package(&self, name: &str) -> Result<FoundPackage, anyhow::Error> {
        let path = format!("packages/{}", utf8_percent_encode(name, NON_ALPHANUMERIC));
        match self.request(&path).await {
            Ok(text) => Ok(FoundPackage::Known(text)),
            Err(kube::Error::Api(status)) if status.code == StatusCode::NOT_FOUND.as_u16() => {
                Ok(FoundPackage::Unknown(status.message.clone()))
            }
            Err(error) => Err(error).with_context(|| self.does_not_answer()),
        }
    }

    /// Returns what it says of the packages that a snapshot lacks, since no catalog has them.
    async fn unknown(
        &self,
        snapshot: &LoadoutSnapshot,
        packages: &[String],
    ) -> BTreeMap<String, String> {
        let is_missing =
            |name: &&String| snapshot.catalogs.iter().all(|it| it.part.package(name).is_none());
        let missing: BTreeSet<&String> = packages.iter().filter(is_missing).collect();
        let mut unknown = BTreeMap::new();
        for name in missing.into_iter().take(UNKNOWN_MAX) {
            if let Ok(FoundPackage::Unknown(message)) = self.package(name).await {
                unknown.insert(name.clone(), message);
            }
        }
        unknown
    }
}

/// A list of packages as a resolver sends it.
#[derive(Deserialize)]
struct PackageList {
    packages: Vec<PackageSummary>,
}

/// A package as a resolver sends it: as each catalog has it, the most preferred first.
#[derive(Deserialize)]
struct PackageContent<'a> {
    #[serde(borrow)]
    catalogs: Vec<CatalogContent<'a>>,
}

/// A package as a catalog has it.
#[derive(Deserialize)]
struct CatalogContent<'a> {
    #[serde(borrow)]
    index: IndexedPackage<'a>,
}

/// Returns the parameters of a URL: one name with several values.
fn parameters(name: &str, values: &[String]) -> Vec<String> {
    let values = values.iter().map(|it| utf8_percent_encode(it, NON_ALPHANUMERIC));
    values.map(|it| format!("{name}={it}")).collect()
}

/// Returns the parameters of the requests for a snapshot: one request for the Operators alone, or as many as the
/// names of the packages need.
fn snapshot_queries(packages: &[String]) -> Vec<String> {
    let (mut queries, mut query) = (Vec::new(), String::new());
    for parameter in parameters("package", packages) {
        if query.is_empty() {
            query = parameter;
        } else if query.len() + parameter.len() < QUERY_SIZE_MAX {
            query.push('&');
            query.push_str(&parameter);
        } else {
            queries.push(std::mem::replace(&mut query, parameter));
        }
    }
    queries.push(query);
    queries
}

/// Fails if no catalog of the cluster has a package.
///
/// # Errors
///
/// When none has it; the error names similar packages.
pub(super) fn require_package(
    snapshot: &LoadoutSnapshot,
    catalogs: &OpenedCatalogs,
    name: &str,
) -> Result<(), anyhow::Error> {
    if snapshot.catalogs.iter().any(|it| it.part.package(name).is_some()) {
        return Ok(());
    }
    match catalogs.unknown.get(name) {
        Some(message) => bail!("{message}"),
        // The snapshot has only a part of what the catalogs have.
        None => bail!("no catalog has package `{name}`"),
    }
}

#[cfg(test)]
mod tests;
