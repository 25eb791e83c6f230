//! Generates the data that is checked in: `cargo xtask codegen openapi --from DIR`.
//!
//! DIR is the directory of the Go module `k8s.io/kubernetes` at the wanted version, as
//! `go mod download -json k8s.io/kubernetes@v1.37.1` prints it. What comes out is
//! `kubernetes/k8s-schema/data/kubernetes.bin`: a length (4 bytes, little endian), that many bytes
//! of a compressed JSON index (version, resources, sections), then the compressed sections, one for
//! each group-version, each the OpenAPI definitions of its kinds without the prose.
mod columns;
pub(crate) mod crds;
mod documents;
mod go_modules;
#[cfg(feature = "protobuf")]
mod go_structs;
mod kinds;
#[cfg(feature = "protobuf")]
mod protobuf;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value, json};

const OUTPUT: &str = "kubernetes/k8s-schema/data/kubernetes.bin";
const REFERENCE_PREFIX: &str = "#/components/schemas/";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// The section of the types that every custom resource uses.
const META_SECTION: &str = "meta";

/// Runs `cargo xtask codegen …`.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    match words {
        ["crds"] => crds::write(&crate::workspace_root()?),
        ["openapi", "--from", directory] => openapi(Path::new(directory)),
        #[cfg(feature = "protobuf")]
        ["protobuf", "--from", directory] => protobuf::write(Path::new(directory)),
        #[cfg(not(feature = "protobuf"))]
        ["protobuf", "--from", ..] => bail!(
            "needs a reader of .proto files: \
             cargo run -p xtask --features protobuf -- codegen protobuf --from DIR"
        ),
        ["documents", "--from", directory] => documents::write(Path::new(directory)),
        ["columns", "--from", directory, version] => columns::write(Path::new(directory), version),
        ["kinds", "--from", directory, version] => kinds::write(Path::new(directory), version),
        ["policy", "--from", kubeconfig] => crate::policy::record(Path::new(kubeconfig)),
        _ => bail!(
            "usage: cargo xtask codegen \
             (crds | openapi|protobuf|documents --from DIR | columns|kinds --from DIR VERSION | \
             policy --from KUBECONFIG)"
        ),
    }
}

fn openapi(directory: &Path) -> Result<()> {
    let version = directory
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| name.split_once('@'))
        .map(|(_, version)| version.to_owned())
        .context("the directory's name does not end in @VERSION")?;
    let resources = discovery(&directory.join("api/discovery"))?;
    let mut sections: BTreeMap<String, Value> = BTreeMap::new();
    for group_version in group_versions(&resources) {
        let file = directory.join("api/openapi-spec/v3").join(file_name(&group_version));
        let mut document = read_json(&file)?;
        let mut definitions = document
            .pointer_mut("/components/schemas")
            .map(Value::take)
            .with_context(|| format!("{} has no schemas", file.display()))?;
        strip(&mut definitions);
        if group_version == "apiextensions.k8s.io/v1" {
            sections.insert(META_SECTION.to_owned(), closure(&definitions, OBJECT_META));
        }
        sections.insert(group_version, definitions);
    }
    write(&version, &resources, &sections)
}

/// Every resource in discovery order: the core group first, then the groups by priority.
fn discovery(directory: &Path) -> Result<Vec<Value>> {
    let mut out = core_resources(&read_json(&directory.join("api__v1.json"))?);
    let aggregated = read_json(&directory.join("aggregated_v2.json"))?;
    for group in list(&aggregated, "items") {
        let name = group.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("");
        for version in list(group, "versions") {
            let version_name = text(version, "version");
            for resource in list(version, "resources") {
                let (group, version, kind) =
                    response_kind(&resource["responseKind"], name, version_name);
                let subresources: Vec<Value> = list(resource, "subresources")
                    .iter()
                    .map(|sub| {
                        let (group, version, kind) =
                            response_kind(&sub["responseKind"], name, version_name);
                        json!({
                            "name": sub["subresource"], "group": group, "version": version,
                            "kind": kind, "verbs": sub["verbs"],
                        })
                    })
                    .collect();
                out.push(json!({
                    "group": group, "version": version, "kind": kind,
                    "plural": resource["resource"], "singular": resource["singularResource"],
                    "shortNames": or_empty(resource, "shortNames"),
                    "categories": or_empty(resource, "categories"),
                    "namespaced": resource["scope"] == "Namespaced",
                    "verbs": or_empty(resource, "verbs"), "subresources": subresources,
                }));
            }
        }
    }
    Ok(out)
}

/// The core group is published in the older form of discovery.
fn core_resources(document: &Value) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for resource in list(document, "resources") {
        let name = text(resource, "name");
        let (group, version) = match text(resource, "version") {
            "" => ("", "v1"),
            version => (text(resource, "group"), version),
        };
        if let Some((parent, sub)) = name.split_once('/') {
            let entry = json!({
                "name": sub, "group": group, "version": version,
                "kind": resource["kind"], "verbs": resource["verbs"],
            });
            let parent = out.iter_mut().find(|item| item["plural"] == parent);
            if let Some(list) = parent.and_then(|item| item["subresources"].as_array_mut()) {
                list.push(entry);
            }
            continue;
        }
        out.push(json!({
            "group": group, "version": version, "kind": resource["kind"],
            "plural": name, "singular": resource["singularName"],
            "shortNames": or_empty(resource, "shortNames"),
            "categories": or_empty(resource, "categories"),
            "namespaced": resource["namespaced"], "verbs": resource["verbs"],
            "subresources": [],
        }));
    }
    out
}

fn response_kind<'a>(
    kind: &'a Value,
    group: &'a str,
    version: &'a str,
) -> (&'a str, &'a str, &'a str) {
    match text(kind, "version") {
        "" => (group, version, text(kind, "kind")),
        own => (text(kind, "group"), own, text(kind, "kind")),
    }
}

/// The group-versions of all resources and subresources, as `apps/v1` or `v1`.
fn group_versions(resources: &[Value]) -> BTreeSet<String> {
    resources
        .iter()
        .map(|item| match (text(item, "group"), text(item, "version")) {
            ("", version) => version.to_owned(),
            (group, version) => format!("{group}/{version}"),
        })
        .collect()
}

fn file_name(group_version: &str) -> String {
    match group_version.split_once('/') {
        None => format!("api__{group_version}_openapi.json"),
        Some((group, version)) => format!("apis__{group}__{version}_openapi.json"),
    }
}

/// Drops what only people read. Below `properties` the keys are names of fields, not keywords.
fn strip(definitions: &mut Value) {
    let Some(map) = definitions.as_object_mut() else {
        return;
    };
    for schema in map.values_mut() {
        strip_schema(schema);
    }
}

fn strip_schema(schema: &mut Value) {
    let Some(map) = schema.as_object_mut() else {
        return;
    };
    map.remove("description");
    map.remove("externalDocs");
    map.remove("x-kubernetes-unions");
    map.remove("x-kubernetes-validations");
    for (key, value) in map.iter_mut() {
        match key.as_str() {
            "properties" => strip(value),
            "items" | "additionalProperties" | "not" => strip_schema(value),
            "allOf" | "anyOf" | "oneOf" => {
                value.as_array_mut().into_iter().flatten().for_each(strip_schema);
            }
            _ => {}
        }
    }
}

/// The definition called `root` and all that it refers to.
fn closure(definitions: &Value, root: &str) -> Value {
    let mut out = Map::new();
    let mut open = vec![root.to_owned()];
    while let Some(name) = open.pop() {
        if out.contains_key(&name) {
            continue;
        }
        let schema = definitions[&name].clone();
        references(&schema, &mut open);
        out.insert(name, schema);
    }
    Value::Object(out)
}

fn references(value: &Value, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref") {
                out.extend(reference.strip_prefix(REFERENCE_PREFIX).map(str::to_owned));
            }
            map.values().for_each(|value| references(value, out));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn write(version: &str, resources: &[Value], sections: &BTreeMap<String, Value>) -> Result<()> {
    let mut body = Vec::new();
    let mut places = Map::new();
    for (name, definitions) in sections {
        let packed = pack(definitions)?;
        places.insert(name.clone(), json!([body.len(), packed.len()]));
        body.extend(packed);
    }
    let index = pack(&json!({ "version": version, "resources": resources, "sections": places }))?;
    let mut out = u32::try_from(index.len())?.to_le_bytes().to_vec();
    out.extend(index);
    out.extend(body);
    let target = crate::workspace_root()?.join(OUTPUT);
    fs::write(&target, &out).with_context(|| format!("cannot write {}", target.display()))
}

pub(crate) fn pack(value: &Value) -> Result<Vec<u8>> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&serde_json::to_vec(value)?)?;
    Ok(encoder.finish()?)
}

fn read_json(path: &Path) -> Result<Value> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is not JSON", path.display()))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

fn or_empty(value: &Value, key: &str) -> Value {
    value.get(key).cloned().unwrap_or_else(|| json!([]))
}
