//! `serviceaccounts/token`: issues tokens of service accounts.
use std::sync::Arc;

use jiff::{Timestamp, ToSpan as _};
use k8s_schema::{FieldError, FieldErrorKind, builtin, managed};
use serde_json::{Value, json};

use super::Access;
use super::service_account::{Claims, ISSUER, ObjectReference};
use crate::clock::rfc3339_seconds;
use crate::semantics::cluster::Cluster;
use crate::semantics::context::RequestContext;
use crate::semantics::ownership::actor;
use crate::semantics::registry::ApiResource;
use crate::semantics::{decode, metadata};
use crate::shared_cluster::SharedCluster;
use crate::status::{ApiError, Result, Subject};
use crate::storage::{ObjectKey, StorageId, Stored};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
const SUBJECT: Subject<'static> = Subject { group: GROUP, noun: KIND };

/// The shortest validity of a token, in seconds.
const SECONDS_MIN: i64 = 600;
/// The longest validity of a token, in seconds.
const SECONDS_MAX: i64 = 1 << 32;
/// The default validity of a token, in seconds.
const SECONDS_DEFAULT: i64 = 3_600;

/// The resource of token requests, which only exists as a subresource.
pub(crate) fn resource() -> Arc<ApiResource> {
    Arc::new(ApiResource::built_in(&builtin::Resource {
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        kind: KIND.to_owned(),
        plural: "tokenrequests".to_owned(),
        singular: "tokenrequest".to_owned(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        verbs: vec!["create".to_owned()],
        subresources: Vec::new(),
    }))
}

/// Issues a token for a service account.
///
/// # Errors
/// When there is no such account, or the token request is invalid.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/core/serviceaccount/storage/token.go: Create
pub(crate) fn create(
    access: &Access,
    cluster: &SharedCluster,
    context: &mut RequestContext,
    account: &ObjectKey,
    mut request: Value,
) -> Result<Value> {
    let resource = access.token_request();
    decode::check_type(resource, &mut request)?;
    metadata::set_namespace(resource, Some(&account.namespace), &mut request)?;
    decode::normalize(context, resource, &mut request)?;
    if !request["spec"].is_object() {
        request["spec"] = json!({});
    }
    if request["spec"]["expirationSeconds"].is_null() {
        request["spec"]["expirationSeconds"] = SECONDS_DEFAULT.into();
    }
    metadata::of(&mut request).remove("managedFields");
    if request["spec"].get("audiences").is_none() {
        request["spec"]["audiences"] = Value::Null;
    }
    let writer = actor(context, resource, "authentication.k8s.io/v1", "token");
    // Go encodes the fields that a request leaves out as null, which has no owner.
    let nothing = json!({
        "spec": {"audiences": null, "expirationSeconds": null, "boundObjectRef": null},
    });
    let mut request = managed::track_update(resource.schema(), Some(&nothing), request, &writer);
    let now = cluster.now();
    let claims = cluster.read(|cluster| prepare(cluster, account, &mut request, now))?;
    let claims = Claims { id: access.next_id(), ..claims };
    complete(&mut request, &claims, &access.signer().sign(&claims.to_value()), now);
    Ok(request)
}

/// Validates a token request, completes its metadata and returns the claims of the token.
fn prepare(
    cluster: &Cluster,
    account: &ObjectKey,
    request: &mut Value,
    now: Timestamp,
) -> Result<Claims> {
    let name = &*account.name;
    let given = metadata::text(request, "name");
    if !given.is_empty() && given != name {
        let why = "must match the service account name if specified";
        let problem =
            FieldError::new("metadata.name", FieldErrorKind::Invalid, why).with_value(given.into());
        return Err(ApiError::invalid(SUBJECT, name, &[problem]));
    }
    let found = find(cluster, "serviceaccounts", &account.namespace, name)?;
    let given = metadata::text(request, "uid");
    if !given.is_empty() && *given != *found.uid {
        let why = format!(
            "the UID in the token request ({given}) does not match the UID of the service account \
             ({})",
            found.uid
        );
        return Err(ApiError::conflict(SUBJECT, name, &why));
    }
    let metadata = metadata::of(request);
    metadata.insert("name".to_owned(), name.into());
    metadata.insert("namespace".to_owned(), (&*account.namespace).into());
    metadata.insert("uid".to_owned(), (&*found.uid).into());
    metadata.insert("creationTimestamp".to_owned(), rfc3339_seconds(now).into());
    let spec = &mut request["spec"];
    if spec["audiences"].as_array().is_none_or(Vec::is_empty) {
        spec["audiences"] = json!([ISSUER]);
    }
    let problems = problems(spec);
    if !problems.is_empty() {
        return Err(ApiError::invalid(SUBJECT, "", &problems));
    }
    let seconds = spec["expirationSeconds"].as_i64().unwrap_or(SECONDS_DEFAULT);
    let issued = now.as_second();
    let mut claims = Claims {
        namespace: account.namespace.to_string(),
        account: ObjectReference::to(found),
        issued,
        expires: issued + seconds,
        ..Claims::default()
    };
    let audiences = spec["audiences"].as_array().into_iter().flatten();
    claims.audiences = audiences.filter_map(Value::as_str).map(str::to_owned).collect();
    bind(cluster, &mut claims, &spec["boundObjectRef"])?;
    Ok(claims)
}

/// Upstream: k8s.io/kubernetes/pkg/apis/authentication/validation/validation.go: ValidateTokenRequest
fn problems(spec: &Value) -> Vec<FieldError> {
    let seconds = &spec["expirationSeconds"];
    let why = match seconds.as_i64().unwrap_or_default() {
        ..SECONDS_MIN => "may not specify a duration less than 10 minutes",
        SECONDS_MIN..=SECONDS_MAX => "",
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let attestations = &spec["attestations"];
    if attestations.as_object().is_some_and(|map| !map.is_empty()) {
        let why = "attestations may only be specified with a webhook bound object reference";
        let problem = FieldError::new("spec.attestations", FieldErrorKind::Invalid, why);
        return vec![problem.with_value(attestations.clone())];
    }
    if why.is_empty() {
        return Vec::new();
    }
    let problem = FieldError::new("spec.expirationSeconds", FieldErrorKind::Invalid, why);
    vec![problem.with_value(seconds.clone())]
}

/// Binds a token to an object: the token is invalid once the object is gone.
fn bind(cluster: &Cluster, claims: &mut Claims, reference: &Value) -> Result<()> {
    if !reference.is_object() {
        return Ok(());
    }
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let api_version = text("apiVersion");
    let found = match (api_version.contains('/'), kind) {
        (false, "Pod") => {
            let pod = find(cluster, "pods", &claims.namespace, name)?;
            let spec = &pod.decode()["spec"];
            if spec["serviceAccountName"].as_str() != Some(&*claims.account.name) {
                return Err(ApiError::bad_request(format!(
                    "cannot bind token for serviceaccount {:?} to pod running with different \
                     serviceaccount name.",
                    claims.account.name
                )));
            }
            if let Some(node) = spec["nodeName"].as_str().filter(|name| !name.is_empty()) {
                let nameless = ObjectReference { name: node.to_owned(), uid: String::new() };
                let found = find(cluster, "nodes", "", node);
                claims.node = Some(found.map_or(nameless, ObjectReference::to));
            }
            claims.pod = Some(ObjectReference::to(pod));
            pod
        }
        (false, "Secret") => {
            let secret = find(cluster, "secrets", &claims.namespace, name)?;
            claims.secret = Some(ObjectReference::to(secret));
            secret
        }
        (false, "Node") => {
            let node = find(cluster, "nodes", "", name)?;
            claims.node = Some(ObjectReference::to(node));
            node
        }
        (has_group, _) => {
            let shown = if has_group { api_version.to_owned() } else { format!("/{api_version}") };
            return Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {shown}, Kind={kind}"
            )));
        }
    };
    let uid = text("uid");
    if !uid.is_empty() && *uid != *found.uid {
        return Err(ApiError::conflict(
            Subject { group: "", noun: kind },
            name,
            &format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. \
                 The object might have been deleted and then recreated"
            ),
        ));
    }
    Ok(())
}

fn find<'a>(cluster: &'a Cluster, plural: &str, namespace: &str, name: &str) -> Result<&'a Stored> {
    cluster
        .store
        .find(&StorageId::new("", plural), &ObjectKey::new(namespace, name))
        .map(|found| &**found)
        .ok_or_else(|| ApiError::not_found(Subject { group: "", noun: plural }, name))
}

/// Upstream: k8s.io/kubernetes/pkg/serviceaccount/claims.go: Claims
fn complete(request: &mut Value, claims: &Claims, token: &str, now: Timestamp) {
    if request["spec"].get("boundObjectRef").is_none() {
        request["spec"]["boundObjectRef"] = Value::Null;
    }
    let expires = now + (claims.expires - claims.issued).seconds();
    request["status"] = json!({
        "token": token,
        "expirationTimestamp": rfc3339_seconds(expires),
    });
}
