//! The `metadata/` directory of a bundle: annotations, dependencies, further properties.

use plimsoll_resolve::version::number_for_text;
use serde_json::{Value, json};

use super::read::BundleManifest;
use crate::catalog::DefectCode;
use crate::diagnostic::Diagnostic;

const PREFIX: &str = "operators.operatorframework.io.bundle.";

/// What the metadata of a bundle says.
#[derive(Debug, Default)]
pub struct BundleMetadata {
    /// The package that it belongs to.
    pub package: String,
    /// The channels that it belongs to, by name.
    pub channels: Vec<String>,
    /// The channel that the package follows unless another is chosen; absent if it does not say.
    pub default_channel: Option<String>,
    /// From dependencies and properties, in the form of a file-based catalog.
    pub properties: Vec<Value>,
}

/// Reads the documents of `metadata/`: the first with annotations, the first with dependencies and
/// the first with properties count.
pub fn read(
    directory: &str,
    manifests: &[BundleManifest<'_>],
    defects: &mut Vec<Diagnostic>,
) -> Option<BundleMetadata> {
    let with = |key: &str| {
        let has = |it: &&BundleManifest<'_>| match &it.value[key] {
            Value::Object(map) => !map.is_empty(),
            Value::Array(list) => !list.is_empty(),
            _ => false,
        };
        manifests.iter().find(has)
    };
    // Upstream passes over a file of another form in silence: a typo removes all dependencies.
    for manifest in manifests {
        if !["annotations", "dependencies", "properties"]
            .iter()
            .any(|key| manifest.value.get(key).is_some_and(|it| it.is_array() || it.is_object()))
        {
            let text = "none of `annotations`, `dependencies` and `properties`: it is ignored";
            defects.push(manifest.defect("", DefectCode::BundleAdvice, text));
        }
    }
    let mut metadata = BundleMetadata::default();
    if let Some(manifest) = with("dependencies") {
        dependencies(manifest, &mut metadata, defects);
    }
    if let Some(manifest) = with("properties") {
        match manifest.value["properties"].as_array() {
            Some(properties) => metadata.properties.extend(properties.iter().cloned()),
            None => {
                let text = "`properties` is not a list";
                defects.push(manifest.defect("properties", DefectCode::BundleFile, text));
            }
        }
    }
    let Some(manifest) = with("annotations") else {
        let file = format!("{directory}metadata");
        defects.push(DefectCode::BundleFile.diagnostic(file, "no file with `annotations`"));
        return None;
    };
    annotations(manifest, &mut metadata, defects).then_some(metadata)
}

fn annotations(
    manifest: &BundleManifest<'_>,
    metadata: &mut BundleMetadata,
    defects: &mut Vec<Diagnostic>,
) -> bool {
    let value = |key: &str| {
        let value = &manifest.value["annotations"][format!("{PREFIX}{key}").as_str()];
        value.as_str().map(str::trim)
    };
    let field = |key: &str| format!("annotations.{PREFIX}{key}");
    let mut report = |key: &str, message: String| {
        defects.push(manifest.defect(&field(key), DefectCode::BundleAnnotation, message));
    };
    let fixed = [
        ("mediatype.v1", "registry+v1"),
        ("manifests.v1", "manifests/"),
        ("metadata.v1", "metadata/"),
    ];
    for (key, wanted) in fixed {
        match value(key) {
            Some(found) if found == wanted => {}
            Some(found) => report(key, format!("{PREFIX}{key} is `{found}`, not `{wanted}`")),
            None => report(key, format!("{PREFIX}{key} is missing")),
        }
    }
    let number =
        |key: &str| manifest.value["annotations"][format!("{PREFIX}{key}").as_str()].as_number();
    for key in ["package.v1", "channels.v1", "channel.default.v1"] {
        if let Some(number) = number(key) {
            report(key, format!("{PREFIX}{key} {}", number_for_text(number)));
        }
    }
    if value("channel.default.v1") == Some("") {
        report("channel.default.v1", format!("{PREFIX}channel.default.v1 is empty"));
    }
    metadata.package = value("package.v1").unwrap_or_default().to_owned();
    let channels = value("channels.v1").unwrap_or_default().split(',').map(str::trim);
    metadata.channels = channels.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    metadata.channels.sort();
    metadata.channels.dedup();
    metadata.default_channel =
        value("channel.default.v1").filter(|name| !name.is_empty()).map(str::to_owned);
    if metadata.package.is_empty() && number("package.v1").is_none() {
        report("package.v1", format!("{PREFIX}package.v1 is missing or empty"));
    }
    if metadata.channels.is_empty() && number("channels.v1").is_none() {
        report("channels.v1", format!("{PREFIX}channels.v1 is missing or empty"));
    }
    !metadata.package.is_empty()
}

fn dependencies(
    manifest: &BundleManifest<'_>,
    metadata: &mut BundleMetadata,
    defects: &mut Vec<Diagnostic>,
) {
    let Some(list) = manifest.value["dependencies"].as_array() else {
        let text = "`dependencies` is not a list";
        return defects.push(manifest.defect("dependencies", DefectCode::Dependency, text));
    };
    for (index, item) in list.iter().enumerate() {
        match dependency(item) {
            Ok(property) => metadata.properties.push(property),
            Err(message) => {
                let field = format!("dependencies[{index}]");
                defects.push(manifest.defect(&field, DefectCode::Dependency, message));
            }
        }
    }
}

/// One dependency as a property; the fields may stand below `value`, or beside `type` as in design
/// 002.
fn dependency(item: &Value) -> Result<Value, String> {
    let kind = item["type"].as_str().ok_or("a dependency without a type")?;
    let value = item.get("value").filter(|value| !value.is_null()).unwrap_or(item);
    let text = |names: &[&str], what: &str| -> Result<String, String> {
        let found = names.iter().find_map(|name| value.get(name));
        let text = match found {
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(Value::Number(number)) => {
                return Err(format!("{kind}: {what} {}", number_for_text(number)));
            }
            _ => String::new(),
        };
        if text.is_empty() { Err(format!("{kind}: no {what}")) } else { Ok(text) }
    };
    let (kind, value) = match kind {
        "olm.gvk" | "olm.gvk.required" => {
            let api = json!({
                "group": text(&["group"], "group")?,
                "kind": text(&["kind"], "kind")?,
                "version": text(&["version"], "version")?,
            });
            ("olm.gvk.required", api)
        }
        "olm.package" | "olm.package.required" => {
            let package = json!({
                "packageName": text(&["packageName", "name"], "packageName")?,
                "versionRange": text(&["version", "versionRange"], "version")?,
            });
            ("olm.package.required", package)
        }
        "olm.label" | "olm.label.required" => {
            ("olm.label.required", json!({ "label": text(&["label"], "label")? }))
        }
        "olm.constraint" => ("olm.constraint", value.clone()),
        other => {
            let known = "olm.gvk, olm.package, olm.label and olm.constraint";
            return Err(format!("`{other}` is not a type of dependency: there are {known}"));
        }
    };
    Ok(json!({ "type": kind, "value": value }))
}
