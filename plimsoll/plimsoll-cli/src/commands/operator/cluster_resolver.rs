//! The cluster's resolver as the source of catalogs: what of them a plan depends on comes as a snapshot, by the API
//! server's proxy to the Service, so that this machine needs no catalog (OPR-21, OPR-22).

use std::time::Duration;

use anyhow::{Context as _, bail};
use http::Request;
use k8s_openapi::api::core::v1::Service;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_operators::snapshot::LoadoutSnapshot;
use tokio::time::sleep;

use super::catalogs::{CatalogChoice, OpenedCatalogs};
use crate::arguments::name::hint;
use crate::arguments::resolver::{RESOLVER_LABEL, RESOLVER_LABELLED};
use crate::exit::chain;

/// How often a resolver is asked that is busy, or of which a replica answers that does not lead.
const ATTEMPTS: usize = 8;
/// How long to wait between two attempts.
const PAUSE: Duration = Duration::from_millis(250);

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
        Ok(Some(service)) => snapshot(client, &service, packages).await,
        Err(error) => Err(error),
    };
    match read {
        Ok(mut snapshot) => {
            *catalogs = OpenedCatalogs::default();
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

/// Returns the answer at a path.
async fn ask(client: &Client, path: &str) -> Result<String, anyhow::Error> {
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
    let path = format!(
        "/api/v1/namespaces/{namespace}/services/https:{name}:https/proxy/v1/snapshot?{}",
        parameters.join("&")
    );
    let text = ask(client, &path).await.with_context(|| {
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

/// Fails if no catalog of the cluster has a package.
///
/// # Errors
///
/// When none has it; the error names similar packages.
pub(super) fn require_package(snapshot: &LoadoutSnapshot, name: &str) -> Result<(), anyhow::Error> {
    let packages = snapshot.catalogs.iter().flat_map(|it| &it.part.packages);
    let names: Vec<&str> = packages.map(|it| it.name.as_str()).collect();
    if !names.contains(&name) {
        bail!("no catalog has package `{name}`{}", hint(name, names.into_iter()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
