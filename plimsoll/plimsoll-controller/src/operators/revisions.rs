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
use plimsoll_api::{ApiKind, OPERATOR, OPERATOR_REVISION, ObjectKey};
use plimsoll_operators::revision_key::RevisionKey;
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

/// Returns the Secret with the key that signs OperatorRevisions.
pub fn key_secret() -> ObjectKey {
    ObjectKey {
        group: String::new(),
        kind: "Secret".to_owned(),
        namespace: LEASE_NAMESPACE.to_owned(),
        name: SECRET.to_owned(),
    }
}

/// Returns the key that signs OperatorRevisions; it is made if there is none. When it is new, the revisions are
/// signed that the status of their Operator names: they were made without a key, or with one that is lost. Of
/// those that an earlier version of this program signed, each is signed for the Operator that controls it.
///
/// # Errors
///
/// When something cannot be read or written, or the Secret has no usable key: it is not overwritten.
pub(super) async fn key(client: &Client, writer: &Writer) -> Result<RevisionKey, Error> {
    let failed = |source| Error::RevisionKey { source };
    let secrets: Api<Secret> = Api::namespaced(client.clone(), LEASE_NAMESPACE);
    let found = secrets.get_opt(SECRET).await.map_err(failed)?;
    let key = match &found {
        Some(found) => kept(found).map_err(|problem| Error::UnusableRevisionKey { problem })?,
        None => make(writer).await?,
    };
    let mark = key.mark();
    let signed = found.as_ref().and_then(|it| it.annotations().get(SIGNED));
    if signed != Some(&mark) {
        let is_signed_earlier = signed == Some(&key.earlier_mark());
        sign_recorded(client, writer, &key, is_signed_earlier).await.map_err(failed)?;
        let metadata = json!({ "name": SECRET, "annotations": { SIGNED: mark } });
        let marked = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata });
        let marked = writer.apply_own_in(LEASE_NAMESPACE, &secret(), SECRET, &marked).await;
        marked.map_err(failed)?;
    }
    Ok(key)
}

/// Returns the key in a Secret.
///
/// # Errors
///
/// What is wrong with it, as a clause.
fn kept(secret: &Secret) -> Result<RevisionKey, String> {
    let found = secret.data.as_ref().and_then(|it| it.get(KEY));
    let Some(ByteString(bytes)) = found else {
        let others: Vec<&str> = secret.data.iter().flatten().map(|it| it.0.as_str()).collect();
        let others = match others.as_slice() {
            [] => "it is empty".to_owned(),
            others => format!("it has {}", others.join(", ")),
        };
        return Err(format!("its data has no `{KEY}`, {others}"));
    };
    let read: Result<[u8; RevisionKey::LENGTH], _> = bytes.as_slice().try_into();
    read.map(RevisionKey::new).map_err(|_| {
        format!("data.{KEY} has {} bytes instead of {}", bytes.len(), RevisionKey::LENGTH)
    })
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
    let manager = format!("{SECRET}-{:.8}", key.mark());
    let stored = writer.apply_as(&manager, LEASE_NAMESPACE, &secret(), SECRET, &object).await;
    stored.map_err(|source| Error::RevisionKey { source })?;
    tracing::info!(secret = SECRET, "made the key that signs OperatorRevisions");
    Ok(key)
}

fn secret() -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Secret"), "secrets")
}

/// Signs the OperatorRevisions that the status of their Operator names, and those that an earlier version of this
/// program has signed. If that has signed all with the key, those without its signature are left out.
async fn sign_recorded(
    client: &Client,
    writer: &Writer,
    key: &RevisionKey,
    is_signed_earlier: bool,
) -> Result<(), kube::Error> {
    let operators: Vec<Value> =
        list(client, OPERATOR).await?.into_iter().map(|it| json!(it)).collect();
    for revision in list(client, OPERATOR_REVISION).await? {
        let (name, object) = (revision.name_any(), json!(revision));
        let is_taken_over = |it: &&Value| key.is_taken_over(it, &name, &object, is_signed_earlier);
        if let Some(operator) = operators.iter().find(is_taken_over) {
            let uid = operator["metadata"]["uid"].as_str().unwrap_or_default();
            let signature = key.signature(&name, uid, &object["spec"]);
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

/// Deletes the OperatorRevision with a uid, and releases it for that.
pub(super) async fn delete(writer: &Writer, name: &str, uid: &str) -> Result<(), kube::Error> {
    writer.release_revision(name, Some(uid)).await?;
    let resource = api_resource(OPERATOR_REVISION);
    writer.delete_uid("", &resource, name, uid).await.map(|_| ())
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_secret_without_a_usable_key_is_described() {
        let check = |data: &[(&str, usize)], expected: &str| {
            let data = data
                .iter()
                .map(|(name, length)| ((*name).to_owned(), ByteString(vec![7; *length])));
            let data: BTreeMap<String, ByteString> = data.collect();
            let data = Some(data).filter(|it| !it.is_empty());
            let found = kept(&Secret { data, ..Secret::default() });
            let found = found.map_or_else(|problem| problem, |_| "a key".to_owned());
            assert_eq!(found, expected);
        };
        check(&[("key", 32)], "a key");
        check(&[("key", 31)], "data.key has 31 bytes instead of 32");
        check(&[("key", 0)], "data.key has 0 bytes instead of 32");
        check(&[], "its data has no `key`, it is empty");
        check(&[("tls.crt", 9), ("tls.key", 32)], "its data has no `key`, it has tls.crt, tls.key");
    }
}
