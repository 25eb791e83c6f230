//! A catalog of invented packages that grows while a test runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// The requirements of each version of each package.
const PACKAGES: &str = include_str!("fixture.yaml");

/// The fields of a version that name no package.
const NO_PACKAGES: [&str; 8] =
    ["size", "field", "capability", "class", "conversion", "versions", "provides", "reads"];

/// Requirements by version by package.
#[derive(serde::Deserialize)]
#[serde(transparent)]
pub(super) struct Fixture(BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>);

impl Fixture {
    fn read() -> Self {
        serde_saphyr::from_str(PACKAGES).expect("the packages are in order")
    }

    /// Makes an empty catalog: a tree of bundles needs one at least.
    pub(super) fn begin(catalog: &Path) {
        write_bundle(catalog, "anchor", "1.0.0", "", &BTreeMap::new());
    }

    /// Adds a version of a package to a catalog. What precedes a slash is not part of its name.
    pub(super) fn publish(catalog: &Path, package: &str, version: &str) {
        let Self(packages) = Self::read();
        let versions = packages.get(package).expect("the fixture has the package");
        let package = package.rsplit('/').next().expect("it has a part at least");
        let requires = versions.get(version).expect("the fixture has the version");
        // Any version before it leads to it.
        let first = versions.keys().next().expect("a package has versions");
        write_bundle(catalog, package, version, &format!(">={first} <{version}"), requires);
    }

    /// Adds package `fleet`, which requires so many other packages, and these. Their names are long.
    pub(super) fn publish_fleet(catalog: &Path, count: usize) {
        let names = (0..count).map(|index| format!("member{index:0>44}"));
        let requires: BTreeMap<String, String> =
            names.map(|it| (it, ">=1.0.0".to_owned())).collect();
        for name in requires.keys() {
            write_bundle(catalog, name, "1.0.0", "", &BTreeMap::new());
        }
        write_bundle(catalog, "fleet", "1.0.0", "", &requires);
    }

    /// Has a version of a package run another image.
    pub(super) fn republish(catalog: &Path, package: &str, version: &str) {
        let path = catalog.join(package).join(version).join("manifests/csv.yaml");
        let text = fs::read_to_string(&path).expect("it was published");
        let other = text.replace("registry.example.com/", "registry.example.com/other/");
        // It appears as a whole: the catalog may be read at any time.
        let staging = tempfile::tempdir().expect("a directory");
        let staged = staging.path().join("csv.yaml");
        fs::write(&staged, other).expect("a file");
        fs::rename(staged, path).expect("both are on one file system");
    }
}

fn write_bundle(
    catalog: &Path,
    package: &str,
    version: &str,
    skip_range: &str,
    requires: &BTreeMap<String, String>,
) {
    let prefix = "operators.operatorframework.io.bundle";
    let annotations = json!({ "annotations": {
        (format!("{prefix}.mediatype.v1")): "registry+v1",
        (format!("{prefix}.manifests.v1")): "manifests/",
        (format!("{prefix}.metadata.v1")): "metadata/",
        (format!("{prefix}.package.v1")): package,
        (format!("{prefix}.channels.v1")): "stable",
        (format!("{prefix}.channel.default.v1")): "stable",
    } });
    let is_property = |(name, _): &(&String, &String)| name.starts_with("olm.");
    let properties: Vec<Value> = requires
        .iter()
        .filter(is_property)
        .map(|(name, value)| json!({ "type": name, "value": value }))
        .collect();
    let dependencies: Vec<Value> = requires
        .iter()
        .filter(|it| !is_property(it) && !NO_PACKAGES.contains(&it.0.as_str()))
        .map(|(package, range)| {
            let value = json!({ "packageName": package, "version": range });
            json!({ "type": "olm.package", "value": value })
        })
        .collect();
    let mut manifest = csv(package, version, skip_range, requires.get("capability"));
    let provided = requires.get("provides").map_or(stem(package), String::as_str);
    manifest["spec"]["customresourcedefinitions"]["owned"] = json!([owned(provided)]);
    if let Some(resource) = requires.get("reads") {
        let rule = json!({ "apiGroups": [""], "resources": [resource], "verbs": ["get", "list"] });
        let permissions = &mut manifest["spec"]["install"]["spec"]["clusterPermissions"];
        permissions[0]["rules"].as_array_mut().expect("it has rules").push(rule);
    }
    if requires.contains_key("conversion") {
        manifest["spec"]["webhookdefinitions"] = json!([conversion(package)]);
    }
    let size: Option<u32> = requires.get("size").map(|it| it.parse().expect("a number"));
    let mut definition = definition(provided, size, requires.get("field"));
    let versions = requires.get("versions").map_or("v1", String::as_str);
    store_in_first(versions, &mut definition, &mut manifest);
    let config = |name: String| {
        let metadata = json!({ "name": name });
        let data = json!({ "version": version });
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data })
    };
    let mut files = vec![
        ("metadata/annotations.yaml", annotations),
        ("manifests/csv.yaml", manifest),
        ("manifests/crd.yaml", definition),
        ("manifests/config.yaml", config(format!("{package}-config"))),
        ("manifests/of-version.yaml", config(format!("{package}-of-{version}"))),
    ];
    if let Some(class) = requires.get("class") {
        files.push(("manifests/class.yaml", example_class(class)));
    }
    if !properties.is_empty() {
        files.push(("metadata/properties.yaml", json!({ "properties": properties })));
    }
    if !dependencies.is_empty() {
        files.push(("metadata/dependencies.yaml", json!({ "dependencies": dependencies })));
    }
    // It appears as a whole: the catalog may be read at any time.
    let staging = tempfile::tempdir().expect("a directory");
    for (path, value) in files {
        let path = staging.path().join(path);
        fs::create_dir_all(path.parent().expect("it is in a directory")).expect("a directory");
        fs::write(path, value.to_string()).expect("a file");
    }
    let place = catalog.join(package);
    fs::create_dir_all(&place).expect("a directory");
    fs::rename(staging.keep(), place.join(version)).expect("both are on one file system");
}

/// The ActionClass of the examples.
fn example_class(name: &str) -> Value {
    let documents =
        plimsoll_content::yaml::parse(include_str!("../../../../../examples/actions/class.yaml"));
    let mut objects = documents.into_iter().map(|it| it.value.expect("it is YAML"));
    let is_class = |it: &Value| it["kind"] == "ActionClass" && it["metadata"]["name"] == name;
    objects.find(is_class).expect("the examples have the class")
}

fn definition(stem: &str, size: Option<u32>, field: Option<&String>) -> Value {
    let mut schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    if let Some(size) = size {
        let size = json!({ "type": "integer", "maximum": size });
        let mut properties = json!({ "size": size });
        if let Some(field) = field {
            properties[field] = json!({ "type": "string" });
        }
        let spec = json!({ "type": "object", "properties": properties });
        schema = json!({ "type": "object", "properties": { "spec": spec } });
    }
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
    });
    let plural = format!("{stem}s");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{stem}.example.com") },
        "spec": {
            "group": format!("{stem}.example.com"),
            "names": { "kind": kind(stem), "plural": plural, "singular": stem },
            "scope": "Namespaced",
            "versions": [version],
        },
    })
}

/// Gives a definition versions, the first of which is stored and owned by the package.
fn store_in_first(versions: &str, definition: &mut Value, csv: &mut Value) {
    let like = definition["spec"]["versions"][0].clone();
    let version = |(index, name): (usize, &str)| {
        let mut version = like.clone();
        version["name"] = name.into();
        version["storage"] = (index == 0).into();
        version
    };
    let versions: Vec<Value> = versions.split(' ').enumerate().map(version).collect();
    csv["spec"]["customresourcedefinitions"]["owned"][0]["version"] = versions[0]["name"].clone();
    definition["spec"]["versions"] = versions.into();
}

fn csv(package: &str, version: &str, skip_range: &str, capability: Option<&String>) -> Value {
    let stem = stem(package);
    let operator = format!("{stem}-operator");
    let selected = json!({ "app": operator });
    let container = json!({
        "name": "operator", "image": format!("registry.example.com/{operator}:{version}"),
    });
    let deployment = json!({
        "name": operator,
        "spec": {
            "selector": { "matchLabels": selected },
            "template": {
                "metadata": { "labels": selected },
                "spec": { "serviceAccountName": operator, "containers": [container] },
            },
        },
    });
    let rule = json!({
        "apiGroups": [format!("{stem}.example.com")],
        "resources": [format!("{stem}s")],
        "verbs": ["get", "list", "watch", "update"],
    });
    let mut annotations = json!({});
    if !skip_range.is_empty() {
        annotations["olm.skipRange"] = skip_range.into();
    }
    if let Some(capability) = capability {
        annotations["capability.openshift.io/name"] = capability.as_str().into();
    }
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": { "name": format!("{package}.v{version}"), "annotations": annotations },
        "spec": {
            "version": version,
            "minKubeVersion": "1.30.0",
            "installModes": [{ "type": "AllNamespaces", "supported": true }],
            "install": { "strategy": "deployment", "spec": {
                "clusterPermissions": [{ "serviceAccountName": operator, "rules": [rule] }],
                "deployments": [deployment],
            } },
        },
    })
}

/// The kind that a bundle provides, named after a package.
fn owned(stem: &str) -> Value {
    json!({ "name": format!("{stem}s.{stem}.example.com"), "version": "v1", "kind": kind(stem) })
}

/// The webhook that converts the objects of a package.
fn conversion(package: &str) -> Value {
    json!({
        "type": "ConversionWebhook",
        "generateName": "convert",
        "deploymentName": format!("{package}-operator"),
        "containerPort": 443,
        "targetPort": 9443,
        "webhookPath": "/convert",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "conversionCRDs": [format!("{package}s.{package}.example.com")],
    })
}

/// The name of a package without `-operator`.
fn stem(package: &str) -> &str {
    package.strip_suffix("-operator").unwrap_or(package)
}

/// The kind of a package: its name in CamelCase.
fn kind(stem: &str) -> String {
    let (first, rest) = stem.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}
