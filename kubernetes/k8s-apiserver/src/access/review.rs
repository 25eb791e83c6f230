//! Access and token reviews: kinds whose objects are answered and not stored.
use std::sync::Arc;

use k8s_schema::managed;
use k8s_schema::{FieldError, FieldErrorKind};
use serde_json::{Value, json};

use super::Access;
use super::attributes::{AuthorizationAttributes, ResourceAttributes};
use super::authenticate::of_token;
use super::rbac::Rule;
use super::service_account::ISSUER;
use crate::semantics::context::RequestContext;
use crate::semantics::ownership::actor;
use crate::semantics::registry::ApiResource;
use crate::semantics::{decode, metadata};
use crate::shared_cluster::SharedCluster;
use crate::status::{ApiError, Result, Subject};
use crate::user::UserInfo;

const AUTHORIZATION: &str = "authorization.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Answers a review; none if `resource` is not a review.
///
/// # Errors
/// When the review is malformed or invalid.
pub(crate) fn answer(
    access: &Access,
    cluster: &SharedCluster,
    context: &mut RequestContext,
    resource: &Arc<ApiResource>,
    namespace: Option<&str>,
    object: &Value,
) -> Result<Option<Value>> {
    let review = |context: &mut RequestContext| read(context, resource, namespace, object.clone());
    let answered = match (resource.group.as_str(), resource.kind.as_str()) {
        (AUTHORIZATION, "SelfSubjectAccessReview") => {
            let review = review(context)?;
            let user = Arc::clone(&context.user);
            access_review(access, cluster, review, &user)?
        }
        (AUTHORIZATION, "SubjectAccessReview") => {
            let review = review(context)?;
            let user = subject(&review["spec"]);
            access_review(access, cluster, review, &user)?
        }
        (AUTHORIZATION, "LocalSubjectAccessReview") => {
            if namespace.is_none() {
                return Err(ApiError::no_such_path());
            }
            let review = review(context)?;
            let user = subject(&review["spec"]);
            access_review(access, cluster, review, &user)?
        }
        (AUTHORIZATION, "SelfSubjectRulesReview") => {
            let review = review(context)?;
            rules(access, cluster, &review, &context.user)?
        }
        (AUTHENTICATION, "TokenReview") => {
            let review = review(context)?;
            token(access, cluster, review)?
        }
        (AUTHENTICATION, "SelfSubjectReview") => {
            review(context)?;
            json!({
                "kind": "SelfSubjectReview",
                "apiVersion": resource.api_version(),
                "metadata": {"creationTimestamp": context.now},
                "status": {"userInfo": context.user.to_value()},
            })
        }
        _ => return Ok(None),
    };
    Ok(Some(answered))
}

/// Decodes a review as any new object, `managedFields` included.
fn read(
    context: &mut RequestContext,
    resource: &ApiResource,
    namespace: Option<&str>,
    mut object: Value,
) -> Result<Value> {
    decode::check_type(resource, &mut object)?;
    metadata::set_namespace(resource, namespace, &mut object)?;
    decode::normalize(context, resource, &mut object)?;
    metadata::of(&mut object).remove("managedFields");
    let api_version = resource.api_version();
    let writer = actor(context, resource, &api_version, "");
    Ok(managed::track_update(resource.schema(), None, object, &writer))
}

/// The user that a review is about.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/authorization/subjectaccessreview/rest.go: Create
fn subject(spec: &Value) -> UserInfo {
    let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| -> Vec<String> {
        let list = value.as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let extra = spec["extra"].as_object().into_iter().flatten();
    UserInfo {
        username: text("user"),
        uid: text("uid"),
        groups: texts(&spec["groups"]),
        extra: extra.map(|(key, values)| (key.clone(), texts(values))).collect(),
    }
}

fn access_review(
    access: &Access,
    cluster: &SharedCluster,
    mut review: Value,
    user: &UserInfo,
) -> Result<Value> {
    let problems = problems(&review);
    if !problems.is_empty() {
        // This message of kube-apiserver does not name the kind.
        return Err(ApiError::invalid(Subject { group: AUTHORIZATION, noun: "" }, "", &problems));
    }
    let decision = cluster.read(|cluster| {
        Ok(access.authorizer.authorize(cluster, user, &attributes(&review["spec"])))
    })?;
    let mut status = json!({"allowed": decision.allowed});
    if !decision.reason.is_empty() {
        status["reason"] = decision.reason.into();
    }
    review["status"] = status;
    Ok(review)
}

/// The attributes that a review asks about.
fn attributes(spec: &Value) -> AuthorizationAttributes<'_> {
    fn text<'a>(value: &'a Value, field: &str) -> &'a str {
        value[field].as_str().unwrap_or_default()
    }
    let about = &spec["resourceAttributes"];
    if about.is_object() {
        let resource = ResourceAttributes {
            group: text(about, "group"),
            version: text(about, "version"),
            resource: text(about, "resource"),
            subresource: text(about, "subresource"),
            namespace: text(about, "namespace"),
            name: text(about, "name").into(),
        };
        return AuthorizationAttributes::on(text(about, "verb"), resource);
    }
    let about = &spec["nonResourceAttributes"];
    AuthorizationAttributes {
        verb: text(about, "verb").into(),
        resource: None,
        path: text(about, "path"),
    }
}

/// The validation errors of an access review.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/authorization/validation/validation.go: ValidateSubjectAccessReviewSpec
fn problems(review: &Value) -> Vec<FieldError> {
    const ONE_OF: &str =
        "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    let kind = review["kind"].as_str().unwrap_or_default();
    let spec = &review["spec"];
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let invalid = |field: &str, value: Value, why: &str| {
        FieldError::new(field, FieldErrorKind::Invalid, why).with_value(value)
    };
    let shown_path = || match path {
        Value::Object(_) => json!({
            "Path": path["path"].as_str().unwrap_or_default(),
            "Verb": path["verb"].as_str().unwrap_or_default(),
        }),
        _ => Value::Null,
    };
    let mut problems = Vec::new();
    if resource.is_object() == path.is_object() {
        problems.push(invalid("spec", shown_path(), ONE_OF));
    }
    let is_empty = |value: &Value| match value {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => true,
    };
    if kind != "SelfSubjectAccessReview" && is_empty(&spec["user"]) && is_empty(&spec["groups"]) {
        let why = "at least one of user or group must be specified";
        problems.push(invalid("spec.user", "".into(), why));
    }
    for selector in ["fieldSelector", "labelSelector"] {
        problems.extend(selector_problem(resource, selector));
    }
    let is_local = kind == "LocalSubjectAccessReview";
    let allowed = |field: &String| field == "managedFields" || (is_local && field == "namespace");
    let extra = review["metadata"].as_object().is_some_and(|map| !map.keys().all(allowed));
    if extra {
        let why = if is_local { "must be empty except for namespace" } else { "must be empty" };
        problems.push(invalid("metadata", review["metadata"].clone(), why));
    }
    if is_local && resource.is_object() {
        let asked = resource["namespace"].as_str().unwrap_or_default();
        if asked != metadata::text(review, "namespace") {
            let field = "spec.resourceAttributes.namespace";
            problems.push(invalid(field, asked.into(), "must match metadata.namespace"));
        }
    }
    if is_local && path.is_object() {
        let why = "disallowed on this kind of request";
        problems.push(invalid("spec.nonResourceAttributes", shown_path(), why));
    }
    problems
}

/// Upstream: k8s.io/kubernetes/pkg/apis/authorization/validation/validation.go: validateResourceAttributes
fn selector_problem(resource: &Value, name: &str) -> Option<FieldError> {
    let selector = &resource[name];
    if !selector.is_object() {
        return None;
    }
    let path = format!("spec.resourceAttributes.{name}");
    let raw = selector["rawSelector"].as_str().unwrap_or_default();
    let has_requirements = selector["requirements"].as_array().is_some_and(|list| !list.is_empty());
    match (raw.is_empty(), has_requirements) {
        (false, true) => Some(
            FieldError::new(
                format!("{path}.rawSelector"),
                FieldErrorKind::Invalid,
                "may not specified at the same time as requirements",
            )
            .with_value(raw.into()),
        ),
        (true, false) => Some(FieldError::new(
            format!("{path}.requirements"),
            FieldErrorKind::Required,
            format!("when {path} is specified, requirements or rawSelector is required"),
        )),
        _ => None,
    }
}

/// Upstream: k8s.io/kubernetes/pkg/registry/authorization/selfsubjectrulesreview/rest.go: Create
fn rules(
    access: &Access,
    cluster: &SharedCluster,
    review: &Value,
    user: &UserInfo,
) -> Result<Value> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let (rules, missing) = cluster.read(|cluster| {
        if access.authorizer.allows_everything() {
            return Ok((Rule::everything().to_vec(), String::new()));
        }
        Ok(access.authorizer.rules_for(cluster, user, namespace))
    })?;
    let about = |of_urls: bool| -> Vec<Value> {
        let of_kind = |rule: &&Rule| {
            if of_urls { !rule.urls.is_empty() } else { !rule.resources.is_empty() }
        };
        rules.iter().filter(of_kind).map(|rule| rule.to_value(of_urls)).collect()
    };
    let mut status = json!({
        "resourceRules": about(false),
        "nonResourceRules": about(true),
        "incomplete": false,
    });
    if !missing.is_empty() {
        status["evaluationError"] = missing.into();
    }
    Ok(json!({
        "kind": review["kind"],
        "apiVersion": review["apiVersion"],
        "metadata": {},
        "spec": {},
        "status": status,
    }))
}

/// Upstream: k8s.io/kubernetes/pkg/registry/authentication/tokenreview/storage.go: Create
fn token(access: &Access, cluster: &SharedCluster, mut review: Value) -> Result<Value> {
    let spec = review["spec"].clone();
    let token = spec["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
    }
    let asked = spec["audiences"].as_array().into_iter().flatten();
    let mut audiences: Vec<&str> = asked.filter_map(Value::as_str).collect();
    if audiences.is_empty() {
        audiences.push(ISSUER);
    }
    let now = cluster.now();
    let found = cluster.read(|cluster| Ok(of_token(access, cluster, token, &audiences, now)))?;
    review["status"] = match found {
        Ok((user, audiences)) => json!({
            "authenticated": true,
            "user": user.to_value(),
            "audiences": audiences,
        }),
        Err(error) => json!({"user": {}, "error": error}),
    };
    Ok(review)
}
