//! The files of a bundle directory as a [`Bundle`].
//!
//! Upstream: github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/bundle/source/source.go: FromFS

use k8s_schema::builtin;
use plimsoll_content::bundle::{BundleFile, BundleManifest, documents, read_metadata};
use plimsoll_content::catalog::DefectCode;
use plimsoll_content::diagnostic::{Diagnostic, Severity};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::bundle::{Bundle, BundleContent, BundleObject, RegistryContent, finished};
use crate::csv::{self, ClusterServiceVersion, PROPERTIES_ANNOTATION};
use crate::go_json::{escape_html, go_json};

const MEDIA_TYPE: &str = "operators.operatorframework.io.bundle.mediatype.v1";
const REGISTRY: &str = "registry+v1";
const PLAIN: &str = "plain+v0";
/// The file with properties of a bundle.
const PROPERTIES_FILE: &str = "metadata/properties.yaml";

/// Makes a bundle of the files of its directory; files besides `manifests` and `metadata` are
/// passed over (BUN-11).
///
/// # Errors
/// Everything that keeps the files from being read: text that is not YAML, values of another type
/// than their field, a missing or a second ClusterServiceVersion.
pub fn load(files: &[BundleFile]) -> Result<Bundle, Vec<Diagnostic>> {
    let mut defects = Vec::new();
    let metadata_documents = metadata_documents(files, &mut defects);
    let metadata = read_metadata("", &metadata_documents, &mut defects);
    // What the annotations lack keeps a bundle out of a catalog, not from being installed. A
    // missing package is named by the validation.
    defects.retain(|it| it.severity == Severity::Error && it.code != DefectCode::BundleAnnotation);
    let metadata = metadata.unwrap_or_default();
    let package = metadata.package.clone();
    let documents = manifest_documents(files, &mut defects);
    let mut manifests = Vec::new();
    for manifest in &documents {
        objects(manifest, manifest.value.clone(), &mut manifests, &mut defects);
    }
    defects.retain(|it| it.severity == Severity::Error);
    let mut own_properties = Vec::new();
    let media_type = media_type(&metadata_documents);
    let content = match media_type {
        PLAIN => {
            let plain = manifests.into_iter().map(|(_, object)| object).collect();
            Some(BundleContent::Plain(plain))
        }
        REGISTRY | "" => {
            let content = registry(manifests, &mut defects);
            content.map(|mut content| {
                let given = further_properties(&metadata_documents, &mut defects);
                let is_file = |it: &BundleFile| it.path == PROPERTIES_FILE && !it.bytes.is_empty();
                let given = files.iter().any(is_file).then_some(given);
                own_properties = properties(&mut content.csv, given, &mut defects);
                BundleContent::Registry(Box::new(content))
            })
        }
        other => {
            let message = format!(
                "{MEDIA_TYPE} is `{other}`: bundles of {REGISTRY} and {PLAIN} can be installed"
            );
            defects.push(annotations_defect(&metadata_documents, message));
            None
        }
    };
    let Some(content) = content.filter(|_| defects.is_empty()) else {
        return Err(finished(defects, &package));
    };
    own_properties.extend(metadata.properties);
    Ok(Bundle { package, content, properties: own_properties })
}

fn sorted<'f>(files: &'f [BundleFile], directory: &str) -> Vec<&'f BundleFile> {
    let mut found: Vec<&BundleFile> =
        files.iter().filter(|file| file.path.starts_with(directory)).collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn manifest_documents<'f>(
    files: &'f [BundleFile],
    defects: &mut Vec<Diagnostic>,
) -> Vec<BundleManifest<'f>> {
    let mut found = Vec::new();
    for file in sorted(files, "manifests/") {
        if file.path["manifests/".len()..].contains('/') {
            let message = "a directory inside `manifests`: move its files there, or remove it";
            defects.push(DefectCode::BundleFile.diagnostic(&file.path, message));
        } else {
            found.extend(documents(file, defects));
        }
    }
    found
}

fn metadata_documents<'f>(
    files: &'f [BundleFile],
    defects: &mut Vec<Diagnostic>,
) -> Vec<BundleManifest<'f>> {
    let is_document =
        |file: &&BundleFile| file.path.ends_with(".yaml") || file.path.ends_with(".yml");
    let files = sorted(files, "metadata/").into_iter().filter(is_document);
    files.flat_map(|file| documents(file, defects)).collect()
}

fn media_type<'m>(documents: &'m [BundleManifest<'_>]) -> &'m str {
    let texts = documents.iter().filter_map(|it| it.value["annotations"][MEDIA_TYPE].as_str());
    texts.map(str::trim).next().unwrap_or_default()
}

fn annotations_defect(documents: &[BundleManifest<'_>], message: String) -> Diagnostic {
    let with_annotations = documents.iter().find(|it| it.value.get("annotations").is_some());
    match with_annotations {
        Some(manifest) => {
            let field = format!("annotations.{MEDIA_TYPE}");
            manifest.defect(&field, DefectCode::BundleFile, message)
        }
        None => DefectCode::BundleFile.diagnostic("metadata", message),
    }
}

/// An object and the document that it stands in.
type Placed<'m> = (&'m BundleManifest<'m>, BundleObject);

/// The object of a document, or the objects of a list.
///
/// Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/helpers.go: decodeToList
fn objects<'m>(
    manifest: &'m BundleManifest<'m>,
    mut value: Value,
    found: &mut Vec<Placed<'m>>,
    defects: &mut Vec<Diagnostic>,
) {
    if let Some(Value::Array(items)) = value.get_mut("items") {
        let items = std::mem::take(items);
        let text = |name: &str| value[name].as_str().unwrap_or_default();
        let (kind, api_version) = (text("kind"), text("apiVersion"));
        for mut item in items {
            set_kind(&mut item, kind.strip_suffix("List").unwrap_or_default(), api_version);
            objects(manifest, item, found, defects);
        }
        return;
    }
    let (file, line) = (manifest.file.path.clone(), manifest.first_line);
    let object = BundleObject { file, line, value };
    match problem(&object) {
        Some(message) => defects.push(object.defect(DefectCode::BundleFile, message)),
        None => found.push((manifest, object)),
    }
}

/// An item of a list has the kind that the list is of, unless it says so itself.
fn set_kind(item: &mut Value, kind: &str, api_version: &str) {
    if let Some(entries) = item.as_object_mut()
        && !kind.is_empty()
        && !entries.contains_key("kind")
        && !entries.contains_key("apiVersion")
    {
        entries.insert("kind".to_owned(), kind.into());
        entries.insert("apiVersion".to_owned(), api_version.into());
    }
}

/// What keeps a value from being an object.
fn problem(object: &BundleObject) -> Option<String> {
    let Some(entries) = object.value.as_object() else {
        let found = csv::shortened(&object.value);
        return Some(format!("not an object but {found}: every file of `manifests` holds objects"));
    };
    if object.kind().is_empty() {
        return Some("an object without a kind".to_owned());
    }
    let error = metadata_error(entries)?;
    Some(format!("{} `{}`: {error}", object.kind(), object.name()))
}

fn metadata_error(entries: &Map<String, Value>) -> Option<String> {
    let object = json!({ "metadata": entries.get("metadata")? });
    let schema = builtin::schema("", "v1", "ConfigMap")?;
    k8s_schema::decoding_error(&schema, &object)
}

fn registry(manifests: Vec<Placed<'_>>, defects: &mut Vec<Diagnostic>) -> Option<RegistryContent> {
    let (mut found, mut definitions, mut others) = (None, Vec::new(), Vec::new());
    for (manifest, object) in manifests {
        match object.kind() {
            "ClusterServiceVersion" if found.is_some() => {
                let message = "a second ClusterServiceVersion: a bundle has exactly one";
                defects.push(object.defect(DefectCode::BundleFile, message));
            }
            "ClusterServiceVersion" => {
                found = Some(csv::read(manifest, &object.value, defects));
            }
            "CustomResourceDefinition" => definitions.extend(definition(object, defects)),
            _ => {
                let mut object = object;
                narrow_numbers(&mut object.value);
                others.push(object);
            }
        }
    }
    if found.is_none() {
        let message = "no ClusterServiceVersion: a bundle has exactly one";
        defects.push(DefectCode::BundleFile.diagnostic("manifests", message));
    }
    Some(RegistryContent { csv: found?, definitions, others })
}

/// Go holds an integer that needs more than 63 bits as a float.
fn narrow_numbers(value: &mut Value) {
    match value {
        Value::Object(entries) => entries.values_mut().for_each(narrow_numbers),
        Value::Array(items) => items.iter_mut().for_each(narrow_numbers),
        Value::Number(number) if number.is_u64() && !number.is_i64() => {
            if let Some(float) = number.as_f64().and_then(serde_json::Number::from_f64) {
                *number = float;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn definition(mut object: BundleObject, defects: &mut Vec<Diagnostic>) -> Option<BundleObject> {
    let schema = builtin::schema("apiextensions.k8s.io", "v1", "CustomResourceDefinition")?;
    if let Err(error) = k8s_schema::go_round_trip(&schema, &mut object.value) {
        let message = format!("CustomResourceDefinition `{}`: {error}", object.name());
        defects.push(object.defect(DefectCode::BundleFile, message));
        return None;
    }
    Some(object)
}

/// A property as an annotation carries it; its value keeps its form.
#[derive(Debug, Serialize, Deserialize)]
struct AnnotatedProperty {
    #[serde(rename = "type")]
    kind: String,
    value: Box<RawValue>,
}

/// The properties of `metadata/properties.yaml`.
fn further_properties(
    documents: &[BundleManifest<'_>],
    defects: &mut Vec<Diagnostic>,
) -> Vec<AnnotatedProperty> {
    let mut properties = Vec::new();
    for manifest in documents {
        let items = match manifest.value.get("properties") {
            Some(Value::Array(items)) => items,
            None | Some(Value::Null) => continue,
            Some(other) => {
                let message = format!("`properties` is not a list but {}", csv::shortened(other));
                defects.push(manifest.defect("properties", DefectCode::Property, message));
                continue;
            }
        };
        for (index, item) in items.iter().enumerate() {
            let property = serde_json::from_str::<AnnotatedProperty>(&item.to_string());
            match property {
                Ok(property) => properties.push(property),
                Err(_) => {
                    let field = format!("properties[{index}]");
                    let message = "a property has a `type`, which is text, and a `value`";
                    defects.push(manifest.defect(&field, DefectCode::Property, message));
                    break;
                }
            }
        }
    }
    properties
}

/// Puts the further properties into the annotation of the ClusterServiceVersion, behind those that
/// are there, as pods show it; and returns those that were. `further` is `None` without a file of
/// them; Go writes a list without items that it did not read as null.
fn properties(
    csv: &mut ClusterServiceVersion,
    further: Option<Vec<AnnotatedProperty>>,
    defects: &mut Vec<Diagnostic>,
) -> Vec<Value> {
    let text = csv.annotations.get(PROPERTIES_ANNOTATION).map_or("", String::as_str);
    let own: Vec<AnnotatedProperty> = if text.is_empty() {
        Vec::new()
    } else {
        match serde_json::from_str(text) {
            Ok(own) => own,
            Err(error) => {
                let message =
                    format!("{PROPERTIES_ANNOTATION} is not a list of properties: {error}");
                let field = format!("metadata.annotations.{PROPERTIES_ANNOTATION}");
                defects.push(csv.defect(&field, DefectCode::Property, message));
                return Vec::new();
            }
        }
    };
    if let Some(further) = further {
        let all: Vec<String> = own.iter().chain(&further).map(annotated).collect();
        let text = match all.is_empty() {
            true => "null".to_owned(),
            false => format!("[{}]", all.join(",")),
        };
        csv.annotations.insert(PROPERTIES_ANNOTATION.to_owned(), text);
    }
    own.iter()
        .map(|property| {
            let value: Value = serde_json::from_str(property.value.get()).unwrap_or_default();
            json!({ "type": property.kind, "value": value })
        })
        .collect()
}

fn annotated(property: &AnnotatedProperty) -> String {
    let kind = go_json(&property.kind);
    let value = escape_html(&compact(property.value.get()));
    format!("{{\"type\":{kind},\"value\":{value}}}")
}

/// JSON without blanks between tokens.
fn compact(json: &str) -> String {
    let (mut out, mut in_text, mut is_escaped) = (String::with_capacity(json.len()), false, false);
    for character in json.chars() {
        if in_text {
            in_text = is_escaped || character != '"';
            is_escaped = !is_escaped && character == '\\';
        } else if character.is_ascii_whitespace() {
            continue;
        } else {
            in_text = character == '"';
        }
        out.push(character);
    }
    out
}

#[cfg(test)]
mod tests;
