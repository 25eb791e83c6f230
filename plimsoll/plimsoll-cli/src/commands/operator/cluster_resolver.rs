//! The cluster's resolver as the source of catalogs: what of them a plan depends on comes as a snapshot, by the API
//! server's proxy to the Service, so that this machine needs no catalog (OPR-21, OPR-22).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, bail};
use http::{Request, StatusCode};
use k8s_openapi::api::core::v1::Service;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_operators::snapshot::LoadoutSnapshot;
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

/// Returns the catalogs of a cluster that a plan for some packages depends on, in place of `catalogs`, if the
/// command line names none, some cannot be read on this machine, and the cluster has a resolver. Otherwise the
/// snapshot has no catalog.
///
/// # Errors
///
/// When the resolver does not answer or it is not known which one is meant, and no catalog can be read on this
/// machine.
pub(super) async fn read_in_place_of(
    catalogs: &mut OpenedCatalogs,
    choice: &CatalogChoice,
    client: &Client,
    packages: &[String],
) -> Result<LoadoutSnapshot, anyhow::Error> {
    if choice.is_named() || catalogs.elsewhere.is_empty() {
        return Ok(LoadoutSnapshot::default());
    }
    let read = match find(client).await {
        Ok(None) => return Ok(LoadoutSnapshot::default()),
        Ok(Some(service)) => {
            let read = snapshot(client, &service, packages).await;
            read.map(|snapshot| (service, snapshot))
        }
        Err(error) => Err(error),
    };
    match read {
        Ok((service, mut snapshot)) => {
            let unknown = unknown(client, &service, &snapshot, packages).await;
            *catalogs = OpenedCatalogs { unknown, ..OpenedCatalogs::default() };
            // They are read from the API server.
            snapshot.operators.clear();
            Ok(snapshot)
        }
        Err(error) if catalogs.opened.is_empty() => Err(error),
        Err(error) => {
            anstream::eprintln!("note: {}", chain(&error));
            Ok(LoadoutSnapshot::default())
        }
    }
}

/// The Service of a resolver.
struct ResolverService {
    namespace: String,
    name: String,
}

/// Returns the Service of the resolver; `None` if there is none, or Services may not be listed.
///
/// # Errors
///
/// When there are several: each says which packages there are.
async fn find(client: &Client) -> Result<Option<ResolverService>, anyhow::Error> {
    let services: Api<Service> = Api::all(client.clone());
    let label = format!("{RESOLVER_LABEL}={RESOLVER_LABELLED}");
    let Ok(listed) = services.list(&ListParams::default().labels(&label)).await else {
        return Ok(None);
    };
    let service =
        |it: Service| Some(ResolverService { namespace: it.namespace()?, name: it.name_any() });
    let mut found: Vec<ResolverService> = listed.items.into_iter().filter_map(service).collect();
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

/// Returns the answer at a path of the service.
async fn ask(
    client: &Client,
    service: &ResolverService,
    path: &str,
) -> Result<String, anyhow::Error> {
    let ResolverService { namespace, name } = service;
    let path =
        &format!("/api/v1/namespaces/{namespace}/services/https:{name}:https/proxy/v1/{path}");
    for _ in 1..ATTEMPTS {
        match client.request_text(Request::get(path).body(Vec::new())?).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 429 | 503) => {
                sleep(PAUSE).await;
            }
            answered => return Ok(answered?),
        }
    }
    Ok(client.request_text(Request::get(path).body(Vec::new())?).await?)
}

async fn snapshot(
    client: &Client,
    service: &ResolverService,
    packages: &[String],
) -> Result<LoadoutSnapshot, anyhow::Error> {
    let ResolverService { namespace, name } = service;
    let parameters: Vec<String> = packages
        .iter()
        .map(|it| format!("package={}", utf8_percent_encode(it, NON_ALPHANUMERIC)))
        .collect();
    let path = format!("snapshot?{}", parameters.join("&"));
    let text = ask(client, service, &path).await.with_context(|| {
        format!(
            "the cluster's resolver, Service {namespace}/{name}, does not answer; name copies of its \
             catalogs with `--catalog NAME=FILE`"
        )
    })?;
    LoadoutSnapshot::read(&text).with_context(|| {
        format!(
            "the resolver of Service {namespace}/{name} is of another version than this program"
        )
    })
}

/// Returns what the resolver says of the packages that a snapshot lacks, since no catalog has them.
async fn unknown(
    client: &Client,
    service: &ResolverService,
    snapshot: &LoadoutSnapshot,
    packages: &[String],
) -> BTreeMap<String, String> {
    let is_missing =
        |name: &&String| snapshot.catalogs.iter().all(|it| it.part.package(name).is_none());
    let missing: BTreeSet<&String> = packages.iter().filter(is_missing).collect();
    let mut unknown = BTreeMap::new();
    for name in missing.into_iter().take(UNKNOWN_MAX) {
        let path = format!("packages/{}", utf8_percent_encode(name, NON_ALPHANUMERIC));
        let Err(error) = ask(client, service, &path).await else { continue };
        if let Some(kube::Error::Api(status)) = error.downcast_ref()
            && status.code == StatusCode::NOT_FOUND.as_u16()
        {
            unknown.insert(name.clone(), status.message.clone());
        }
    }
    unknown
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
