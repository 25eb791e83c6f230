//! Objects that an API server would refuse, by the rules of Kubernetes for built-in kinds and by the
//! definitions of the payload for others.

use std::collections::{BTreeMap, BTreeSet};

use k8s_schema::builtin::{self, Resource};
use k8s_schema::{
    CustomKind, FieldError, FieldErrorKind, refused_of_builtin, refused_of_custom, unknown_fields,
};
use plimsoll_api::{GroupKind, ObjectKey};
use serde_json::{Map, Value};

use super::FindingCollector;
use crate::Manifest;
use crate::annotations::DELETE;
use crate::diagnostic::FindingCode;

/// What a message shows in place of a value that is sent to API servers alone.
pub(super) const HIDDEN: &str = "***";

/// The kind whose required fields OpenShift's API server fills in on admission, by group and name.
const COMPLETED: (&str, &str) = ("security.openshift.io", "SecurityContextConstraints");

/// The kinds that a payload defines and has objects of, by kind and version. One that is defined
/// several times, for several feature sets, has all of its definitions.
pub(super) struct CustomKinds {
    versions: BTreeMap<(GroupKind, String), Vec<CustomKind>>,
}

impl CustomKinds {
    pub(super) fn of(manifests: &[Manifest]) -> Self {
        let used: BTreeSet<GroupKind> = manifests.iter().map(|it| it.key.group_kind()).collect();
        let mut kinds = Self { versions: BTreeMap::new() };
        for manifest in manifests.iter().filter(|it| it.version == "v1" && !is_deleted(it)) {
            let definition = manifest.definition.as_ref();
            let Some(definition) = definition.filter(|it| used.contains(&it.kind)) else {
                continue;
            };
            let object = manifest.object();
            for version in object["spec"]["versions"].as_array().into_iter().flatten() {
                let name = version["name"].as_str().filter(|_| version["served"] == true);
                if let (Some(name), Ok(kind)) = (name, CustomKind::of(&object, version)) {
                    let key = (definition.kind.clone(), name.to_owned());
                    kinds.versions.entry(key).or_default().push(kind);
                }
            }
        }
        kinds
    }

    /// The definitions of the kind of a manifest.
    fn definitions(&self, manifest: &Manifest) -> &[CustomKind] {
        let key = (manifest.key.group_kind(), manifest.version.clone());
        self.versions.get(&key).map_or(&[], Vec::as_slice)
    }

    /// What every definition refuses: that of one feature set may admit the object.
    fn refused(&self, manifest: &Manifest) -> Vec<FieldError> {
        let key = &manifest.key;
        let is_completed = (key.group.as_str(), key.kind.as_str()) == COMPLETED;
        let mut object = manifest.object();
        // One without a spec is created with an empty one.
        if key.group == "config.openshift.io"
            && key.kind == "ClusterOperator"
            && let Some(fields) = object.as_object_mut()
        {
            fields.entry("spec").or_insert_with(|| Map::new().into());
        }
        let mut first = None;
        for kind in self.definitions(manifest) {
            let mut found = refused_of_custom(&key.group, &key.kind, kind, object.clone());
            found.retain(|error| !is_completed || error.kind != FieldErrorKind::Required);
            if found.is_empty() {
                return found;
            }
            first = first.or(Some(found));
        }
        first.unwrap_or_default()
    }

    /// The fields that no definition knows.
    fn unknown_fields(&self, manifest: &Manifest, object: &Value) -> BTreeSet<String> {
        let mut unknown: Option<BTreeSet<String>> = None;
        for kind in self.definitions(manifest) {
            let found: BTreeSet<String> = match kind.preserves_unknown_fields {
                true => BTreeSet::new(),
                false => unknown_fields(&kind.schema, object).into_iter().collect(),
            };
            unknown = Some(match unknown {
                None => found,
                Some(before) => before.intersection(&found).cloned().collect(),
            });
        }
        unknown.unwrap_or_default()
    }
}

pub(super) fn check(
    manifest: &Manifest,
    object: &Value,
    kinds: &CustomKinds,
    report: &mut FindingCollector<'_>,
) {
    // Of what is deleted, nothing but the key is sent.
    if is_deleted(manifest) {
        return;
    }
    let key = &manifest.key;
    let is_it = |it: &&Resource| {
        it.group == key.group && it.version == manifest.version && it.kind == key.kind
    };
    let errors = match builtin::resources().iter().find(is_it) {
        Some(resource) => refused_of_builtin(resource, manifest.object()),
        None => {
            for field in kinds.unknown_fields(manifest, object) {
                let kind = key.group_kind();
                let message = format!("{kind} has no field {field}: it is dropped");
                report.add(manifest, &field, FindingCode::UnknownField, message);
            }
            kinds.refused(manifest)
        }
    };
    for mut error in errors.into_iter().filter(|error| !is_said(manifest, object, error)) {
        if manifest.is_sensitive() && (error.value.is_some() || error.shown.is_some()) {
            error.shown = Some(HIDDEN.to_owned());
        }
        let message = match error.path.as_str() {
            "" | "<nil>" => error.message(),
            _ => error.to_string(),
        };
        let field = located(&error.path);
        let code = if is_cost(&error) { FindingCode::RuleCost } else { FindingCode::InvalidField };
        report.add_located(manifest, &field, code, message, help(key, &error));
    }
}

fn is_deleted(manifest: &Manifest) -> bool {
    manifest.is_annotated_true(DELETE)
}

/// Whether the rules of a definition cost too much. OpenShift's API server accepts more than others.
fn is_cost(error: &FieldError) -> bool {
    error.kind == FieldErrorKind::Forbidden && error.detail.contains("estimated rule cost")
}

/// Whether another rule reports an error: a namespace that is missing, an annotation that is not a
/// text, the selector of a Job.
fn is_said(manifest: &Manifest, object: &Value, error: &FieldError) -> bool {
    let key = &manifest.key;
    let has_selector =
        key.group == "batch" && key.kind == "Job" && object.pointer("/spec/selector").is_some();
    match error.path.as_str() {
        "metadata.namespace" => error.kind == FieldErrorKind::Required,
        path if path.starts_with("metadata.annotations.") => {
            error.kind == FieldErrorKind::TypeInvalid
        }
        "spec.template.metadata.labels" => has_selector,
        path => has_selector && path.starts_with("spec.selector"),
    }
}

/// What helps against an error whose message does not say it.
fn help(key: &ObjectKey, error: &FieldError) -> Option<String> {
    let is_subject = error.path.starts_with("subjects[") && error.path.ends_with(".namespace");
    if error.kind == FieldErrorKind::Required && is_subject {
        return Some("name the namespace of the ServiceAccount".to_owned());
    }
    if matches!(error.kind, FieldErrorKind::Required | FieldErrorKind::TypeInvalid) {
        let kind = key.kind.to_lowercase();
        let fields: Vec<&str> =
            error.path.split('.').map(|it| it.split('[').next().unwrap_or_default()).collect();
        return Some(format!("see `kubectl explain {kind}.{}`", fields.join(".")));
    }
    let help = match error.detail.as_str() {
        it if it.contains("`selector` does not match template `labels`") => {
            "give spec.selector.matchLabels and spec.template.metadata.labels the same labels"
        }
        it if it.starts_with("illegal base64 data") => {
            "encode the value as `base64 --wrap=0` does, or write it as it is in stringData"
        }
        it if it.starts_with("quantities must match") => "write a quantity such as 2, 500m or 1Gi",
        _ => return None,
    };
    Some(help.to_owned())
}

/// The path of a field as locations have it. API servers write keys of maps in brackets, and the
/// schema that all versions of a definition share outside of them.
fn located(path: &str) -> String {
    let path = match path.strip_prefix("spec.validation.") {
        Some(rest) => format!("spec.versions[0].schema.{rest}"),
        None => path.to_owned(),
    };
    let mut found = String::new();
    let mut rest = path.as_str();
    while let Some((before, after)) = rest.split_once('[') {
        let Some((key, after)) = after.split_once(']') else { break };
        let is_index = !key.is_empty() && key.bytes().all(|it| it.is_ascii_digit());
        found.push_str(before);
        found.push_str(&if is_index { format!("[{key}]") } else { format!(".{key}") });
        rest = after;
    }
    found.push_str(rest);
    found
}
