//! Creates what must exist before anything can be reported: our CRDs, the ClusterVersion, and the
//! ReleaseProgress object.

use std::iter;
use std::time::Duration;

use kube::core::DynamicObject;
use kube::{Api, Client, ResourceExt as _};
use plimsoll_api::config::ClusterVersionSpec;
use plimsoll_api::crd::CapabilityNames;
use plimsoll_api::progress::ClusterVersionRecord;
use plimsoll_api::{
    ApiKind, CLUSTER_VERSION, CLUSTER_VERSION_NAME, OPERATOR, RELEASE_PROGRESS, crd,
};
use plimsoll_plan::reconciler::desired::CapabilityRules;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::definition;
use crate::error::Error;
use crate::resources::{Resources, api_resource, definitions};
use crate::write::{Writer, chain};

/// How often to poll for what has just been created, and for what others have to create.
const POLL_SOON: Duration = Duration::from_millis(50);
const POLL_LATER: Duration = Duration::from_secs(1);
/// How often to poll for definitions to be served before they are applied again.
const POLLS_APPLIED: u32 = 20;

/// Repeats a request until it succeeds: a server that is not up yet, or fails for a while, only
/// delays the start.
///
/// # Errors
///
/// When the server rejects the request for good, or the controller is stopped.
pub(crate) async fn retry_until_ok<T, F>(
    stop: &CancellationToken,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut logged = String::new();
    loop {
        let error = match attempt().await {
            Err(error) if !error.is_lasting() => error,
            result => return result,
        };
        let text = chain(&error);
        if text != logged {
            let is_of_object =
                matches!(error, Error::UnreadableSpec { .. } | Error::UnusableRevisionKey { .. });
            if is_of_object {
                tracing::warn!("{text}");
            } else {
                tracing::warn!(error = %text, "the API server fails or is not up; trying again");
            }
            logged = text;
        }
        pause(POLL_LATER, stop).await?;
    }
}

/// Installs the CRDs that are missing and waits until all of them are served. Returns the names of
/// ours that a newer version of this program installed.
///
/// ClusterVersion and ClusterOperator CRDs that exist are left alone: a payload may have brought
/// its own.
pub(crate) async fn install_crds(
    client: &Client,
    writer: &Writer,
    stop: &CancellationToken,
) -> Result<Vec<String>, Error> {
    let kinds = [CLUSTER_VERSION, plimsoll_api::CLUSTER_OPERATOR, RELEASE_PROGRESS];
    install_definitions(client, writer, &release_definitions(None), &kinds, stop).await
}

/// The definitions of the controller of releases; that of ClusterVersion accepts these names only, or
/// all.
pub(crate) fn release_definitions(names: Option<&CapabilityNames>) -> Vec<Value> {
    let others = crd::manifests().into_iter().skip(1);
    iter::once(crd::cluster_versions(names)).chain(others).collect()
}

/// Installs definitions that are missing and waits until all of their kinds are served. Returns the
/// names of ours that a newer version of this program installed.
pub(crate) async fn install_definitions(
    client: &Client,
    writer: &Writer,
    manifests: &[Value],
    kinds: &[ApiKind],
    stop: &CancellationToken,
) -> Result<Vec<String>, Error> {
    let newer = apply_definitions(client, writer, manifests).await?;
    let mut polls: u32 = 0;
    for kind in kinds {
        while !is_served(client, *kind).await? {
            pause(POLL_SOON, stop).await?;
            polls += 1;
            if polls.is_multiple_of(POLLS_APPLIED) {
                // One that was being deleted may be gone by now.
                apply_definitions(client, writer, manifests).await?;
            }
        }
    }
    Ok(newer)
}

/// Applies the CRDs that are missing, and our own ones unless a newer version of this program
/// installed them: an older definition would drop fields that it does not know. Returns the names of
/// those that are left as they are.
pub(crate) async fn apply_definitions(
    client: &Client,
    writer: &Writer,
    manifests: &[Value],
) -> Result<Vec<String>, Error> {
    let definitions = definitions();
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &definitions);
    let mut newer = Vec::new();
    for manifest in manifests {
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let ours = manifest["spec"]["group"] == RELEASE_PROGRESS.group
            || manifest["spec"]["group"] == OPERATOR.group;
        let found = api
            .get_metadata_opt(&name)
            .await
            .map_err(|source| Error::InstallCrd { name: name.clone(), source })?;
        if found.as_ref().is_some_and(|it| it.metadata.deletion_timestamp.is_some()) {
            tracing::warn!(
                name,
                "a definition is being deleted: it is created again once it is gone"
            );
        }
        let version =
            crd::definition_version(|it| manifest["metadata"]["annotations"][it].as_str());
        let installed = found.as_ref().map(|live| {
            crd::definition_version(|it| live.annotations().get(it).map(String::as_str))
        });
        match installed {
            Some(installed) if ours && installed > version => {
                tracing::warn!(
                    name,
                    installed,
                    version,
                    "a newer version of this program installed the definition: it is left as it is"
                );
                newer.push(name);
            }
            Some(_) if !ours => {}
            Some(_) | None => writer
                .apply_own(&definitions, &name, manifest)
                .await
                .map_err(|source| Error::InstallCrd { name, source })?,
        }
    }
    Ok(newer)
}

/// Returns whether a kind is served.
pub(crate) async fn is_served(client: &Client, kind: ApiKind) -> Result<bool, Error> {
    let found = Resources::discover_version(client, kind.group, kind.version)
        .await
        .map_err(|source| Error::Discover { source })?;
    Ok(found.iter().any(|(gvk, _)| gvk.kind == kind.kind))
}

/// The ClusterVersion; waits for it, or creates it: with a spec if there was none before, or as it
/// is recorded. One that exists is not changed. Definitions that go meanwhile, as when a server is
/// restored from an early backup, are installed again.
pub(crate) async fn cluster_version(
    client: &Client,
    writer: &Writer,
    create: Option<&ClusterVersionSpec>,
    record: Option<&ClusterVersionRecord>,
    stop: &CancellationToken,
) -> Result<DynamicObject, Error> {
    let resource = api_resource(CLUSTER_VERSION);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut is_logged = false;
    loop {
        let found = api
            .get_opt(CLUSTER_VERSION_NAME)
            .await
            .map_err(|source| Error::ReadClusterVersion { source })?;
        if let Some(object) = found {
            return Ok(object);
        }
        if let Some(spec) = create {
            // The names that it accepts may be those of a release that is gone.
            definition::accept(client, writer, None).await?;
            writer
                .create_own(&resource, new_cluster_version(spec, record))
                .await
                .map_err(|source| Error::CreateClusterVersion { source })?;
            continue;
        }
        if !is_logged {
            tracing::warn!(
                "there is no ClusterVersion \"version\", waiting for one (--create makes it)"
            );
            is_logged = true;
        }
        pause(POLL_LATER, stop).await?;
        if !is_served(client, CLUSTER_VERSION).await? {
            install_crds(client, writer, stop).await?;
        }
    }
}

/// Returns what to report of capabilities that were chosen for a new ClusterVersion when there is one
/// that requests others; `None` for nothing.
pub(crate) fn unused_choice(
    create: &ClusterVersionSpec,
    spec: &ClusterVersionSpec,
) -> Option<String> {
    let chosen = create.capabilities.as_ref()?;
    let requested = spec.capabilities.clone().unwrap_or_default();
    (*chosen != requested).then(|| {
        format!(
            "the ClusterVersion {CLUSTER_VERSION_NAME:?} exists and is not changed: it requests \
             {requested}, and the chosen {chosen} is ignored; change spec.capabilities of the \
             ClusterVersion to request it"
        )
    })
}

/// The ClusterVersion of a new cluster: with a spec, or as it is recorded if there was one before.
pub fn new_cluster_version(
    spec: &ClusterVersionSpec,
    record: Option<&ClusterVersionRecord>,
) -> Value {
    let mut metadata = json!({ "name": CLUSTER_VERSION_NAME });
    let mut requested = record.map_or_else(|| spec.clone(), |record| record.spec.clone());
    if requested.cluster_id.is_empty() {
        spec.cluster_id.clone_into(&mut requested.cluster_id);
    }
    if let Some(record) = record {
        let annotations: serde_json::Map<String, Value> = record
            .annotations
            .iter()
            .map(|it| (it.name.clone(), it.value.clone().into()))
            .collect();
        metadata["annotations"] = annotations.into();
    }
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": CLUSTER_VERSION.kind,
        "metadata": metadata,
        "spec": requested,
    })
}

/// Keeps the names that the definition of ClusterVersion accepts at those of the rules, until stopped.
pub(crate) async fn keep_names(
    client: Client,
    writer: Writer,
    mut rules: watch::Receiver<CapabilityRules>,
    stop: CancellationToken,
) {
    let mut kept = None;
    loop {
        let names = rules.borrow_and_update().names.clone();
        if names.is_some() && names != kept {
            let accept = || definition::accept(&client, &writer, names.as_ref());
            match retry_until_ok(&stop, accept).await {
                Ok(()) => kept = names,
                Err(Error::Stopped) => return,
                Err(error) => tracing::warn!(
                    error = chain(&error),
                    "the definition of ClusterVersion accepts other capabilities than the release has"
                ),
            }
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            changed = rules.changed() => if changed.is_err() { return },
        }
    }
}

/// The object in which processes record how far they are; `None` when there is none.
pub(crate) async fn recorded_progress(client: &Client) -> Result<Option<DynamicObject>, Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &api_resource(RELEASE_PROGRESS));
    let found = api.get_opt(CLUSTER_VERSION_NAME).await;
    found.map_err(|source| Error::ReadProgress { source })
}

/// The object in which processes record how far they are; makes it when there is none. It has no
/// owner: it outlives the ClusterVersion.
pub(crate) async fn release_progress(
    client: &Client,
    writer: &Writer,
) -> Result<DynamicObject, Error> {
    let resource = api_resource(RELEASE_PROGRESS);
    loop {
        if let Some(object) = recorded_progress(client).await? {
            return Ok(object);
        }
        let object = json!({
            "apiVersion": format!("{}/{}", RELEASE_PROGRESS.group, RELEASE_PROGRESS.version),
            "kind": RELEASE_PROGRESS.kind,
            "metadata": { "name": CLUSTER_VERSION_NAME },
        });
        let created = writer.create_own(&resource, object).await;
        created.map_err(|source| Error::WriteProgress { source })?;
    }
}

async fn pause(duration: Duration, stop: &CancellationToken) -> Result<(), Error> {
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(Error::Stopped),
        () = sleep(duration) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_api::config::{CapabilitiesSpec, ClusterVersionSpec};

    use super::unused_choice;

    /// A spec that requests a set and a capability; nothing at all without a set.
    fn spec(request: Option<(&str, &str)>) -> ClusterVersionSpec {
        let capabilities = request.map(|(set, names)| CapabilitiesSpec {
            baseline_capability_set: set.to_owned(),
            additional_enabled_capabilities: names.split_whitespace().map(str::to_owned).collect(),
        });
        ClusterVersionSpec { capabilities, ..ClusterVersionSpec::default() }
    }

    #[test]
    fn a_choice_that_an_existing_cluster_version_does_not_request_is_reported() {
        let none = Some(("None", ""));
        let message = |requested: &str, chosen: &str| {
            format!(
                "the ClusterVersion \"version\" exists and is not changed: it requests \
                 {requested}, and the chosen {chosen} is ignored; change spec.capabilities of the \
                 ClusterVersion to request it"
            )
        };
        for (chosen, requested, expected) in [
            (None, None, None),
            (None, none, None),
            (none, none, None),
            (Some(("", "")), None, None),
            (none, None, Some(message("the default set", "set None"))),
            (
                Some(("v4.11", "Console Build")),
                none,
                Some(message("set None", "set v4.11 and Console, Build")),
            ),
        ] {
            let found = unused_choice(&spec(chosen), &spec(requested));
            assert_eq!(found, expected, "{chosen:?} {requested:?}");
        }
    }
}
