//! The cluster's resolver as the source of catalogs: what of them a plan depends on comes as a snapshot, by the API
//! server's proxy to the Service, so that this machine needs no catalog (OPR-21, OPR-22).

use anyhow::{Context as _, bail};
use http::Request;
use k8s_openapi::api::core::v1::Service;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt as _};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_operators::snapshot::LoadoutSnapshot;

use super::catalogs::{CatalogChoice, OpenedCatalogs};
use crate::arguments::name::hint;
use crate::arguments::resolver::{RESOLVER_LABEL, RESOLVER_LABELLED};
use crate::exit::chain;

/// Returns the catalogs of a cluster that a plan for some packages depends on, in place of `catalogs`, if the
/// command line names none, some cannot be read on this machine, and the cluster has a resolver. Otherwise the
/// snapshot has no catalog.
///
/// # Errors
///
/// When the resolver does not answer, and no catalog can be read on this machine.
pub(super) async fn read_in_place_of(
    catalogs: &mut OpenedCatalogs,
    choice: &CatalogChoice,
    client: &Client,
    packages: &[String],
) -> Result<LoadoutSnapshot, anyhow::Error> {
    if choice.is_named() || catalogs.elsewhere.is_empty() {
        return Ok(LoadoutSnapshot::default());
    }
    let Some(service) = find(client).await else { return Ok(LoadoutSnapshot::default()) };
    match snapshot(client, &service, packages).await {
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
async fn find(client: &Client) -> Option<ResolverService> {
    let services: Api<Service> = Api::all(client.clone());
    let selected = ListParams::default().labels(&format!("{RESOLVER_LABEL}={RESOLVER_LABELLED}"));
    let listed = services.list(&selected).await.ok()?;
    let first = listed.items.into_iter().next()?;
    Some(ResolverService { namespace: first.namespace()?, name: first.name_any() })
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
    let request = Request::get(path).body(Vec::new())?;
    let text = client.request_text(request).await.with_context(|| {
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
