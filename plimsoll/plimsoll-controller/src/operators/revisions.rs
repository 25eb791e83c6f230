//! OperatorRevisions in the cluster: the key that signs them, and the finalizer that holds them.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client, ResourceExt as _};
use plimsoll_api::olm::DELETION_FINALIZER;
use plimsoll_api::{ApiKind, OPERATOR, OPERATOR_REVISION};
use plimsoll_operators::revision_key::{RevisionKey, is_recorded};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::error::Error;
use crate::lease::LEASE_NAMESPACE;
use crate::resources::{api_resource, definitions};
use crate::write::{Writer, chain};

/// The Secret with the key, in [`LEASE_NAMESPACE`].
pub(crate) const SECRET: &str = "plimsoll-revisions";
/// The key of its data.
const KEY: &str = "key";
/// Annotation of the Secret: a code of the key with which the OperatorRevisions were signed that were there
/// before it.
const SIGNED: &str = "olm.io/signed";
/// The delay before a failed release is repeated.
const RELEASE_RETRY: Duration = Duration::from_secs(5);

/// Returns the key that signs OperatorRevisions; it is made if there is none. When it is new, the revisions are
/// signed that the status of their Operator names: they were made without a key, or with one that is lost.
///
/// # Errors
///
/// When something cannot be read or written.
pub(super) async fn key(client: &Client, writer: &Writer) -> Result<RevisionKey, Error> {
    let failed = |source| Error::RevisionKey { source };
    let secrets: Api<Secret> = Api::namespaced(client.clone(), LEASE_NAMESPACE);
    let found = secrets.get_opt(SECRET).await.map_err(failed)?;
    let key = match found.as_ref().and_then(kept) {
        Some(key) => key,
        None => make(writer).await?,
    };
    let mark = key.signature(SECRET, &Value::Null);
    if found.is_none_or(|it| it.annotations().get(SIGNED) != Some(&mark)) {
        sign_recorded(client, writer, &key).await.map_err(failed)?;
        let metadata = json!({ "name": SECRET, "annotations": { SIGNED: mark } });
        let marked = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata });
        let marked = writer.apply_own_in(LEASE_NAMESPACE, &secret(), SECRET, &marked).await;
        marked.map_err(failed)?;
    }
    Ok(key)
}

/// Returns the key in a Secret; `None` if it has none.
fn kept(secret: &Secret) -> Option<RevisionKey> {
    let ByteString(bytes) = secret.data.as_ref()?.get(KEY)?;
    let bytes: [u8; RevisionKey::LENGTH] = bytes.as_slice().try_into().ok()?;
    Some(RevisionKey::new(bytes))
}

/// Makes a key and stores it.
async fn make(writer: &Writer) -> Result<RevisionKey, Error> {
    let mut bytes = [0; RevisionKey::LENGTH];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| Error::Random)?;
    let key = RevisionKey::new(bytes);
    let object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": SECRET },
        "data": { KEY: STANDARD.encode(bytes) },
    });
    // With another manager for each key, one that another process stored meanwhile is a conflict.
    let manager = format!("{SECRET}-{:.8}", key.signature(SECRET, &Value::Null));
    let stored = writer.apply_as(&manager, LEASE_NAMESPACE, &secret(), SECRET, &object).await;
    stored.map_err(|source| Error::RevisionKey { source })?;
    tracing::info!(secret = SECRET, "made the key that signs OperatorRevisions");
    Ok(key)
}

fn secret() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Secret"), "secrets")
}

/// Signs the OperatorRevisions that the status of their Operator names.
async fn sign_recorded(
    client: &Client,
    writer: &Writer,
    key: &RevisionKey,
) -> Result<(), kube::Error> {
    let operators: Vec<Value> =
        list(client, OPERATOR).await?.into_iter().map(|it| json!(it)).collect();
    for revision in list(client, OPERATOR_REVISION).await? {
        let (name, object) = (revision.name_any(), json!(revision));
        let is_recorded = operators.iter().any(|operator| is_recorded(operator, &object));
        if is_recorded && !key.has_signed(&name, &object) {
            let signature = key.signature(&name, &object["spec"]);
            writer.sign_revision(&revision, &signature).await?;
            tracing::info!(name, "took over an OperatorRevision without a valid signature");
        }
    }
    Ok(())
}

async fn list(client: &Client, kind: ApiKind) -> Result<Vec<DynamicObject>, kube::Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &api_resource(kind));
    Ok(api.list(&ListParams::default()).await?.items)
}

/// Deletes an OperatorRevision, and releases it for that.
pub(super) async fn delete(writer: &Writer, name: &str) -> Result<(), kube::Error> {
    writer.release_revision(name, None).await?;
    writer.delete_own(&api_resource(OPERATOR_REVISION), name).await
}

/// Removes our finalizer from the OperatorRevision with a uid, again and again until it succeeds.
pub(super) async fn release(writer: &Writer, name: &str, uid: &str) {
    while let Err(error) = writer.release_revision(name, Some(uid)).await {
        let error = chain(&error);
        tracing::warn!(error, name, "could not release an OperatorRevision; trying again");
        sleep(RELEASE_RETRY).await;
    }
}

/// Releases all OperatorRevisions if their definition is being deleted, which would wait for them: it is created
/// again once it is gone.
///
/// # Errors
///
/// When something cannot be read or written.
pub(super) async fn release_with_definition(
    client: &Client,
    writer: &Writer,
) -> Result<(), kube::Error> {
    let definition = format!("{}.{}", OPERATOR_REVISION.plural, OPERATOR_REVISION.group);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &definitions());
    let found = api.get_metadata_opt(&definition).await?;
    if found.is_none_or(|it| it.metadata.deletion_timestamp.is_none()) {
        return Ok(());
    }
    let held = |it: &DynamicObject| it.finalizers().iter().any(|it| it == DELETION_FINALIZER);
    for revision in list(client, OPERATOR_REVISION).await?.iter().filter(|it| held(it)) {
        writer.release_revision(&revision.name_any(), None).await?;
    }
    Ok(())
}
