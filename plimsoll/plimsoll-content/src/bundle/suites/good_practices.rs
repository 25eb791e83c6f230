//! Good practices: what the Operator SDK recommends.

use std::collections::BTreeSet;

use plimsoll_resolve::version::parse_strict;
use serde_json::Value;

use super::text;
use crate::bundle::metadata::{BundleMetadata, read as read_metadata};
use crate::bundle::read::BundleManifest;
use crate::catalog::DefectCode;
use crate::diagnostic::Diagnostic;

/// Upstream: github.com/operator-framework/api/pkg/validation/internal/good_practices.go: validateGoodPracticesFrom
pub(super) fn good_practices(
    csv: &BundleManifest<'_>,
    metadata: &[BundleManifest<'_>],
    defects: &mut Vec<Diagnostic>,
) {
    let mut advise = |field: &str, text: String| {
        defects.push(csv.defect(field, DefectCode::BundleAdvice, text));
    };
    for relation in ["owned", "required"] {
        let field = format!("spec.customresourcedefinitions.{relation}");
        for (index, it) in
            csv.list(&format!("/spec/customresourcedefinitions/{relation}")).iter().enumerate()
        {
            if text(&it["description"]).is_empty() {
                let name = text(&it["name"]);
                advise(
                    &format!("{field}[{index}]"),
                    format!("the {relation} definition {name} has no description"),
                );
            }
        }
    }
    let name = csv.name();
    let version = name.find(".v").map(|at| &name[at + 2..]);
    let ending = |text: &str| {
        let starts = text.match_indices(|it: char| it.is_ascii_digit()).map(|(at, _)| at);
        starts.map(|at| &text[at..]).any(|text| parse_strict(text).is_ok())
    };
    if !ending(version.unwrap_or(name)) {
        advise(
            "metadata.name",
            format!("the name {name} does not end in a version MAJOR.MINOR.PATCH"),
        );
    }
    if name.split(".v").count() != 2 {
        advise("metadata.name", format!("the name {name} has not the form NAME.vVERSION"));
    }
    for (index, deployment) in csv.list("/spec/install/spec/deployments").iter().enumerate() {
        let containers = deployment.pointer("/spec/template/spec/containers");
        for container in containers.and_then(Value::as_array).into_iter().flatten() {
            if !container["resources"]["requests"].is_object() {
                let field = format!("spec.install.spec.deployments[{index}]");
                let name = text(&container["name"]);
                advise(
                    &field,
                    format!(
                        "the container {name} requests neither processor time nor memory: where a \
                         quota demands requests its pods cannot be created"
                    ),
                );
            }
        }
    }
    if ["permissions", "clusterPermissions"].iter().any(|field| defines_kinds(csv, field)) {
        advise(
            "spec.install",
            "it may create definitions: let a package bring them that it depends on".to_owned(),
        );
    }
    // A package without one may be meant so, and then has an empty list.
    if csv.value.pointer("/spec/install/spec/deployments").is_none_or(Value::is_null) {
        let text = "there is no deployment to install";
        defects.push(csv.defect("spec.install", DefectCode::BundleFile, text));
    }
    channels(metadata, defects);
}

fn channels(metadata: &[BundleManifest<'_>], defects: &mut Vec<Diagnostic>) {
    let BundleMetadata { channels, default_channel, .. } =
        read_metadata("", metadata, &mut Vec::new()).unwrap_or_default();
    let names: BTreeSet<String> = channels.into_iter().chain(default_channel).collect();
    let known = ["candidate", "fast", "stable"];
    let others: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !name.is_empty() && !known.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    let Some(manifest) = metadata.iter().find(|it| it.value["annotations"].is_object()) else {
        return;
    };
    if !others.is_empty() {
        let text = format!(
            "channels are recommended to begin with candidate, fast or stable, unlike {}",
            others.join(", ")
        );
        defects.push(manifest.defect("annotations", DefectCode::BundleAdvice, text));
    }
}

/// Whether a rule lets the operator define kinds.
fn defines_kinds(csv: &BundleManifest<'_>, field: &str) -> bool {
    let has = |rule: &Value, field: &str, wanted: &[&str]| {
        let items = rule[field].as_array().into_iter().flatten();
        items.filter_map(Value::as_str).any(|it| wanted.contains(&it))
    };
    csv.list(&format!("/spec/install/spec/{field}"))
        .iter()
        .flat_map(|permission| permission["rules"].as_array().into_iter().flatten())
        .any(|rule| {
            has(rule, "apiGroups", &["apiextensions.k8s.io"])
                && has(rule, "resources", &["customresourcedefinitions", "*"])
                && has(rule, "verbs", &["create", "patch", "*"])
        })
}
