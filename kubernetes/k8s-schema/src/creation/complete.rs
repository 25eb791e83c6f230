//! What kube-apiserver fills in of a new object before it validates it.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// Fills in what validation expects of a new object of a built-in kind.
pub(super) fn complete(group: &str, kind: &str, has_status: bool, object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    if has_status && !(group.is_empty() && kind == "Node") {
        fields.remove("status");
    }
    match (group, kind) {
        ("", "Secret") => encode_string_data(fields),
        ("batch", "Job") => generate_job_selector(fields),
        _ => {}
    }
}

/// Moves `stringData` of a Secret to `data`.
///
/// Upstream: k8s.io/kubernetes/pkg/apis/core/v1/conversion.go: Convert_v1_Secret_To_core_Secret
pub fn encode_string_data(fields: &mut Map<String, Value>) {
    if let Some(Value::Object(plain)) = fields.remove("stringData") {
        let data = fields.entry("data").or_insert_with(|| json!({}));
        for (key, value) in plain {
            data[key] = STANDARD.encode(value.as_str().unwrap_or_default()).into();
        }
    }
}

/// Generates the selector of a Job from its uid, unless `manualSelector` is set.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/batch/job/strategy.go: generateSelector
pub fn generate_job_selector(fields: &mut Map<String, Value>) {
    let name = fields["metadata"]["name"].clone();
    let uid = fields["metadata"]["uid"].clone();
    let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if spec.get("manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let selector = spec.entry("selector").or_insert_with(|| json!({}));
    selector["matchLabels"]["batch.kubernetes.io/controller-uid"] = uid.clone();
    let Some(template) = spec.get_mut("template").and_then(Value::as_object_mut) else {
        return;
    };
    let metadata = template.entry("metadata").or_insert_with(|| json!({}));
    let labels = metadata
        .as_object_mut()
        .map(|metadata| metadata.entry("labels").or_insert_with(|| json!({})));
    if let Some(Value::Object(labels)) = labels {
        let before = Value::Object(labels.clone());
        for (key, value) in [
            ("batch.kubernetes.io/controller-uid", &uid),
            ("batch.kubernetes.io/job-name", &name),
            ("controller-uid", &uid),
            ("job-name", &name),
        ] {
            labels.insert(key.to_owned(), value.clone());
        }
        let labels = labels.clone();
        if let Some(metadata) = fields["metadata"].as_object_mut() {
            // Labels that the job has from its pods stay the same as theirs.
            let shared = metadata.get("labels").is_none_or(|own| *own == before);
            if shared {
                metadata.insert("labels".to_owned(), Value::Object(labels));
            }
        }
    }
}
