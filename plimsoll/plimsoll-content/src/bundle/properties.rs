//! What a bundle's manifests say, as properties (RES-4.3).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::metadata::BundleMetadata;
use super::read::BundleManifest;
use crate::catalog::DefectCode;
use crate::diagnostic::Diagnostic;

/// A bundle as it goes into a catalog.
#[derive(Debug)]
pub(super) struct ParsedBundle {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) package: String,
    pub(super) channels: Vec<String>,
    pub(super) default_channel: Option<String>,
    pub(super) replaces: Option<String>,
    pub(super) skips: Vec<String>,
    pub(super) skip_range: Option<String>,
    /// The document `olm.bundle`.
    pub(super) document: Value,
}

/// Makes a bundle of its manifests; `csv` is one of them.
pub(super) fn bundle(
    csv: &BundleManifest<'_>,
    manifests: &[BundleManifest<'_>],
    metadata: BundleMetadata,
    defects: &mut Vec<Diagnostic>,
) -> ParsedBundle {
    let BundleMetadata { package, channels, default_channel, properties: given } = metadata;
    let name = csv.name().to_owned();
    let version = csv.text("/spec/version").to_owned();
    let mut properties = given;
    properties.extend(annotated(csv, defects));
    if !properties.iter().any(|it| it["type"] == "olm.package") {
        let mut value = json!({ "packageName": &package, "version": &version });
        let release = csv.text("/spec/release");
        if !release.is_empty() {
            value["release"] = release.into();
        }
        properties.push(json!({ "type": "olm.package", "value": value }));
    }
    properties.extend(provided(csv, manifests));
    properties.extend(required(csv));
    properties.sort_by_cached_key(|it| (it["type"].to_string(), it["value"].to_string()));
    properties.dedup();
    properties.push(json!({ "type": "olm.csv.metadata", "value": csv_metadata(csv) }));
    for manifest in manifests {
        let data = STANDARD.encode(manifest.value.to_string());
        properties.push(json!({ "type": "olm.bundle.object", "value": { "data": data } }));
    }
    let texts = |pointer: &str| {
        let texts = csv.list(pointer).iter().filter_map(Value::as_str);
        texts.map(str::to_owned).collect::<Vec<String>>()
    };
    let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let document = json!({
        "schema": "olm.bundle",
        "name": &name,
        "package": &package,
        "image": "",
        "properties": properties,
        "relatedImages": csv.list("/spec/relatedImages"),
    });
    ParsedBundle {
        file: csv.file.path.clone(),
        line: csv.line(""),
        replaces: filled(csv.text("/spec/replaces")),
        skips: texts("/spec/skips"),
        skip_range: filled(csv.text("/metadata/annotations/olm.skipRange")),
        name,
        version,
        package,
        channels,
        default_channel,
        document,
    }
}

/// The properties that a ClusterServiceVersion carries as an annotation.
fn annotated(csv: &BundleManifest<'_>, defects: &mut Vec<Diagnostic>) -> Vec<Value> {
    let text = csv.text("/metadata/annotations/olm.properties");
    if text.is_empty() {
        return Vec::new();
    }
    serde_json::from_str(text).unwrap_or_else(|error| {
        let text = format!("the annotation olm.properties is not a JSON list: {error}");
        defects.push(csv.defect("metadata.annotations", DefectCode::Property, text));
        Vec::new()
    })
}

/// The APIs of a CustomResourceDefinition: group, version and kind.
pub(super) fn apis(definition: &BundleManifest<'_>) -> Vec<(String, String, String)> {
    let group = definition.text("/spec/group");
    let kind = definition.text("/spec/names/kind");
    let versions = definition.list("/spec/versions").iter();
    let mut versions: Vec<&str> = versions.filter_map(|it| it["name"].as_str()).collect();
    let single = definition.text("/spec/version");
    if !single.is_empty() && !versions.contains(&single) {
        versions.push(single);
    }
    let api = |version: &str| (group.to_owned(), version.to_owned(), kind.to_owned());
    versions.into_iter().map(api).collect()
}

fn gvk(property: &str, group: &str, version: &str, kind: &str) -> Value {
    json!({ "type": property, "value": { "group": group, "kind": kind, "version": version } })
}

fn provided(csv: &BundleManifest<'_>, manifests: &[BundleManifest<'_>]) -> Vec<Value> {
    let definitions = manifests.iter().filter(|it| it.kind() == "CustomResourceDefinition");
    let owned = csv.list("/spec/apiservicedefinitions/owned").iter().filter_map(service_api);
    let apis = definitions.flat_map(apis).chain(owned);
    apis.map(|(group, version, kind)| gvk("olm.gvk", &group, &version, &kind)).collect()
}

fn required(csv: &BundleManifest<'_>) -> Vec<Value> {
    let definitions = csv.list("/spec/customresourcedefinitions/required").iter();
    let services = csv.list("/spec/apiservicedefinitions/required").iter();
    let apis = definitions.filter_map(definition_api).chain(services.filter_map(service_api));
    apis.map(|(group, version, kind)| gvk("olm.gvk.required", &group, &version, &kind)).collect()
}

/// The API that a ClusterServiceVersion means by `{name: plural.group, version, kind}`.
pub(super) fn definition_api(value: &Value) -> Option<(String, String, String)> {
    let (_, group) = value["name"].as_str()?.split_once('.')?;
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    Some((group.to_owned(), text("version")?, text("kind")?))
}

pub(super) fn service_api(value: &Value) -> Option<(String, String, String)> {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    Some((text("group")?, text("version")?, text("kind")?))
}

/// The fields of a ClusterServiceVersion that a catalog shows.
fn csv_metadata(csv: &BundleManifest<'_>) -> Value {
    const FIELDS: &[(&str, &str)] = &[
        ("apiServiceDefinitions", "/spec/apiservicedefinitions"),
        ("crdDescriptions", "/spec/customresourcedefinitions"),
        ("annotations", "/metadata/annotations"),
        ("description", "/spec/description"),
        ("displayName", "/spec/displayName"),
        ("installModes", "/spec/installModes"),
        ("keywords", "/spec/keywords"),
        ("labels", "/metadata/labels"),
        ("links", "/spec/links"),
        ("maintainers", "/spec/maintainers"),
        ("maturity", "/spec/maturity"),
        ("minKubeVersion", "/spec/minKubeVersion"),
        ("nativeAPIs", "/spec/nativeAPIs"),
        ("provider", "/spec/provider"),
    ];
    let mut metadata = Map::new();
    for (name, pointer) in FIELDS {
        if let Some(value) = csv.value.pointer(pointer) {
            metadata.insert((*name).to_owned(), value.clone());
        }
    }
    // A number here is a defect of the bundle, which is named with its place.
    metadata.retain(|name, value| name != "minKubeVersion" || value.is_string());
    Value::Object(metadata)
}
