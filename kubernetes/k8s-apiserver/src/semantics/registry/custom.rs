//! Builds resources from CustomResourceDefinitions.
use std::sync::OnceLock;

use k8s_schema::{FieldError, Schema, versions};
use serde_json::Value;

use super::conversion::ConversionWebhook;
use super::resource::{
    ApiResource, CustomVersion, PrinterColumn, ResourceOrigin, ScalePaths, Scope, Subresource,
};
use crate::json::{text, texts};
use crate::json_path;
use crate::storage::StorageId;

/// Verbs that all custom resources have.
const CUSTOM_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// The version that a definition stores its objects in.
pub(crate) fn storage_version(spec: Option<&Value>) -> String {
    spec.and_then(|spec| spec["versions"].as_array())
        .into_iter()
        .flatten()
        .find(|version| version["storage"] == true)
        .and_then(|version| version["name"].as_str())
        .unwrap_or_default()
        .to_owned()
}

/// The schema of one version of a definition.
///
/// # Errors
/// When it is not structural.
pub(crate) fn schema_of(definition: &Value, version: &Value) -> Result<Schema, Vec<FieldError>> {
    let preserves = definition["spec"]["preserveUnknownFields"] == true;
    match version.pointer("/schema/openAPIV3Schema") {
        Some(schema) => Schema::from_crd(schema, preserves),
        None => Ok(Schema::untyped()),
    }
}

/// Builds the resource of one version of a definition; `stored_schema` is the schema of its storage
/// version.
///
/// # Errors
/// When the schema is not structural.
pub(crate) fn resource_of(
    definition: &Value,
    version: &Value,
    stored_schema: &Schema,
    schema_id: u64,
) -> Result<ApiResource, Vec<FieldError>> {
    let spec = &definition["spec"];
    let names = &spec["names"];
    let (group, kind, plural) = (
        text(&spec["group"]).to_owned(),
        text(&names["kind"]).to_owned(),
        text(&names["plural"]).to_owned(),
    );
    let subresources = &version["subresources"];
    let is_stored = version["storage"] == true;
    let custom = CustomVersion {
        schema: if is_stored { stored_schema.clone() } else { schema_of(definition, version)? },
        stored_schema: stored_schema.clone(),
        preserves_unknown_fields: spec["preserveUnknownFields"] == true,
        storage_version: storage_version(Some(spec)),
        scale: subresources.get("scale").map(|scale| ScalePaths {
            spec_replicas: text(&scale["specReplicasPath"]).to_owned(),
            status_replicas: text(&scale["statusReplicasPath"]).to_owned(),
            label_selector: scale["labelSelectorPath"].as_str().map(str::to_owned),
        }),
        columns: printer_columns(version),
        selectable_fields: version["selectableFields"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|field| text(&field["jsonPath"]).trim_start_matches('.').to_owned())
            .collect(),
        conversion: ConversionWebhook::read(definition),
        deprecation_warning: (version["deprecated"] == true).then(|| {
            version["deprecationWarning"].as_str().map_or_else(
                || deprecation(spec, &group, &kind, text(&version["name"])),
                str::to_owned,
            )
        }),
    };
    let served_subresources =
        subresources_of(&group, text(&version["name"]), &kind, &custom, subresources);
    Ok(ApiResource {
        storage: StorageId::new(&group, &plural),
        group,
        version: text(&version["name"]).to_owned(),
        list_kind: names["listKind"].as_str().map_or_else(|| format!("{kind}List"), str::to_owned),
        singular: names["singular"].as_str().map_or_else(|| kind.to_lowercase(), str::to_owned),
        kind,
        plural,
        short_names: texts(&names["shortNames"]).map(str::to_owned).collect(),
        categories: texts(&names["categories"]).map(str::to_owned).collect(),
        scope: if spec["scope"] == "Namespaced" { Scope::Namespaced } else { Scope::Cluster },
        verbs: CUSTOM_VERBS.map(str::to_owned).to_vec(),
        subresources: served_subresources,
        schema_id,
        origin: ResourceOrigin::Custom(Box::new(custom)),
        schema: OnceLock::new(),
    })
}

/// The warning about a deprecated version, with the version to use instead.
fn deprecation(spec: &Value, group: &str, kind: &str, version: &str) -> String {
    let better = spec["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|other| other["served"] == true && other["deprecated"] != true)
        .filter_map(|other| other["name"].as_str())
        .filter(|other| versions::compare(other, version).is_lt())
        .min_by(|left, right| versions::compare(left, right));
    let hint = better.map(|better| format!("; use {group}/{better} {kind}")).unwrap_or_default();
    format!("{group}/{version} {kind} is deprecated{hint}")
}

fn subresources_of(
    group: &str,
    version: &str,
    kind: &str,
    custom: &CustomVersion,
    declared: &Value,
) -> Vec<Subresource> {
    let verbs = || ["get", "patch", "update"].map(str::to_owned).to_vec();
    let mut found = Vec::new();
    if declared.get("status").is_some() {
        found.push(Subresource {
            name: "status".to_owned(),
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            verbs: verbs(),
        });
    }
    if custom.scale.is_some() {
        found.push(Subresource {
            name: "scale".to_owned(),
            group: "autoscaling".to_owned(),
            version: "v1".to_owned(),
            kind: "Scale".to_owned(),
            verbs: verbs(),
        });
    }
    found
}

/// The description of a printer column; one without a description gets its JSON path.
fn described(column: &Value) -> String {
    let description = text(&column["description"]).to_owned();
    if !description.is_empty() {
        return description;
    }
    format!("Custom resource definition column (in JSONPath format): {}", text(&column["jsonPath"]))
}

/// The printer columns of a version, up to the first whose path cannot be read.
///
/// Upstream: k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go: New
fn printer_columns(version: &Value) -> Vec<PrinterColumn> {
    let declared = version["additionalPrinterColumns"].as_array();
    match declared {
        Some(columns) if !columns.is_empty() => columns
            .iter()
            .take_while(|column| json_path::is_valid(text(&column["jsonPath"])))
            .map(|column| PrinterColumn {
                name: text(&column["name"]).to_owned(),
                column_type: text(&column["type"]).to_owned(),
                format: text(&column["format"]).to_owned(),
                description: described(column),
                priority: column["priority"].as_i64().unwrap_or_default(),
                json_path: text(&column["jsonPath"]).to_owned(),
            })
            .collect(),
        _ => vec![PrinterColumn {
            name: "Age".to_owned(),
            column_type: "date".to_owned(),
            format: String::new(),
            description: "Time since the object was created.".to_owned(),
            priority: 0,
            json_path: ".metadata.creationTimestamp".to_owned(),
        }],
    }
}
