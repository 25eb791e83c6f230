//! `AdmissionReview`: requests to webhooks and their responses.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::semantics::cluster::admission::{WriteAttributes, kind_of};
use crate::semantics::context::RequestContext;
use crate::semantics::registry::ApiResource;
use crate::semantics::webhook::replay::WebhookResponse;

/// The objects of a write in an admission review.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReviewSubject<'a> {
    /// The resource in the version by which the webhook matches.
    pub(super) resource: &'a ApiResource,
    /// The object in that version; none for deletions.
    pub(super) object: Option<&'a Value>,
    /// The object before the write, in that version; none for creations.
    pub(super) old: Option<&'a Value>,
    /// Whether the response may patch the object.
    pub(super) mutating: bool,
}

/// The valid response of a webhook.
#[derive(Clone, Debug, Default)]
pub(super) struct AdmissionResponse {
    pub(super) allowed: bool,
    /// The `status` of a denial; null if there is none.
    pub(super) status: Value,
    pub(super) warnings: Vec<String>,
    pub(super) annotations: Vec<(String, String)>,
    /// The type and the text of the patch; none without a patch.
    pub(super) patch: Option<(String, Vec<u8>)>,
}

fn kind_value([group, version, kind]: [&str; 3]) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

fn resource_value(resource: &ApiResource) -> Value {
    json!({
        "group": resource.group,
        "version": resource.version,
        "resource": resource.plural,
    })
}

/// The `request` of a review without its uid and objects; also the `request` of policies.
pub(super) fn request(
    context: &RequestContext,
    attributes: &WriteAttributes<'_>,
    resource: &ApiResource,
) -> Map<String, Value> {
    let mut request = Map::new();
    let mut set = |field: &str, value: Value| request.insert(field.to_owned(), value);
    set("kind", kind_value(kind_of(resource, attributes.subresource)));
    set("resource", resource_value(resource));
    set("requestKind", kind_value(attributes.kind()));
    set("requestResource", resource_value(attributes.resource));
    for (field, text) in [
        ("subResource", attributes.subresource),
        ("requestSubResource", attributes.subresource),
        ("name", attributes.name.as_str()),
        ("namespace", attributes.namespace.as_str()),
    ] {
        if !text.is_empty() {
            set(field, text.into());
        }
    }
    set("operation", attributes.operation.name().into());
    set("userInfo", context.user.to_value());
    set("dryRun", attributes.dry_run.into());
    set("options", attributes.options.clone());
    request
}

/// The review of a write, without its uid.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go: CreateV1AdmissionReview
pub(super) fn write(
    context: &RequestContext,
    attributes: &WriteAttributes<'_>,
    shown: &ReviewSubject<'_>,
    version: &str,
) -> Value {
    let mut request = request(context, attributes, shown.resource);
    request.insert("object".to_owned(), shown.object.cloned().unwrap_or_default());
    request.insert("oldObject".to_owned(), shown.old.cloned().unwrap_or_default());
    json!({
        "kind": "AdmissionReview",
        "apiVersion": format!("admission.k8s.io/{version}"),
        "request": request,
    })
}

/// Reads the response of a webhook.
///
/// # Errors
/// When it is not a valid response.
///
/// Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go: VerifyAdmissionResponse
pub(super) fn read(
    received: &WebhookResponse,
    version: &str,
    mutating: bool,
) -> Result<AdmissionResponse, String> {
    let review = &received.review;
    let Some(response) = review.get("response").filter(|response| response.is_object()) else {
        return Err("webhook response was absent".to_owned());
    };
    let is_strict = version == "v1";
    if is_strict {
        check_identity(received, response)?;
    }
    let patch = response["patch"].as_str().filter(|patch| !patch.is_empty());
    let patch_type = response.get("patchType").and_then(Value::as_str);
    let patch = match (mutating, patch, patch_type) {
        (true, Some(_), None) if is_strict => {
            return Err("webhook returned response.patch but not response.patchType".to_owned());
        }
        (true, None, Some(_)) if is_strict => {
            return Err("webhook returned response.patchType but not response.patch".to_owned());
        }
        (true, Some(_), Some("")) if is_strict => {
            return Err("webhook returned invalid response.patchType of \"\"".to_owned());
        }
        (false, Some(_), _) if is_strict => {
            return Err("validating webhook may not return response.patch".to_owned());
        }
        (false, None, Some(_)) if is_strict => {
            return Err("validating webhook may not return response.patchType".to_owned());
        }
        (true, Some(patch), named) => {
            let bytes = STANDARD.decode(patch).map_err(|error| error.to_string())?;
            let named = if is_strict { named.unwrap_or_default() } else { "JSONPatch" };
            Some((named.to_owned(), bytes))
        }
        (true | false, _, _) => None,
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(AdmissionResponse {
        allowed: response["allowed"] == true,
        status: response.get("status").cloned().unwrap_or_default(),
        warnings: response["warnings"].as_array().into_iter().flatten().map(text).collect(),
        annotations: response["auditAnnotations"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.clone(), text(value)))
            .collect(),
        patch,
    })
}

/// Checks that a response has the kind of a review and the uid of its request.
fn check_identity(received: &WebhookResponse, response: &Value) -> Result<(), String> {
    let review = &received.review;
    let uid = response["uid"].as_str().unwrap_or_default();
    if uid != received.uid {
        return Err(format!("expected response.uid={:?}, got {uid:?}", received.uid));
    }
    let text = |field: &str| review[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if (api_version, kind) != ("admission.k8s.io/v1", "AdmissionReview") {
        let slash = if api_version.contains('/') { "" } else { "/" };
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got \
             {slash}{api_version}, Kind={kind}"
        ));
    }
    Ok(())
}
