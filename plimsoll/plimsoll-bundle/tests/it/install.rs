//! The installations of real and hand-made bundles keep what is promised of them.

use std::path::{Path, PathBuf};

use k8s_testkit::prerequisites::required;
use plimsoll_api::olm::OPERATOR_LABEL;
use plimsoll_bundle::{
    Bundle, CertificateProvider, InstallRequest, RevisionObjects, load, object_key,
    revision_objects, serving_certificates,
};
use plimsoll_content::bundle::{BundleFile, carried_files, convert};
use plimsoll_content::catalog::BundleSearch;
use plimsoll_content::diagnostic::Diagnostic;
use serde_json::{Value, json};

use crate::golden::{bundle_files, committed, entries};

const NAMESPACE: &str = "harbour";
const WATCHED: &str = "quay";

fn install(
    bundle: &Bundle,
    config: Option<&Value>,
    certificates: CertificateProvider,
) -> Result<RevisionObjects, Vec<Diagnostic>> {
    let operator = bundle.package.as_str();
    let request = InstallRequest { operator, namespace: NAMESPACE, config, certificates };
    revision_objects(bundle, &request)
}

/// Whether a field is null; an item of a list may be.
fn has_null(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(entries) => entries.iter().any(|(key, value)| {
            let is_value = ["default", "example"].contains(&key.as_str());
            (value.is_null() && !is_value) || has_null(value)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// What of an installation is not as promised.
fn broken(revision: &RevisionObjects, operator: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let first = object_key(&revision.objects[0]);
    if (first.kind.as_str(), first.name.as_str()) != ("Namespace", NAMESPACE) {
        wrong.push(format!("{first} comes first"));
    }
    for object in &revision.objects {
        let key = object_key(object);
        let metadata = &object["metadata"];
        // The API server's own binding for those behind it is the only one elsewhere.
        let is_allowed = ["", NAMESPACE, WATCHED].contains(&key.namespace.as_str())
            || (key.namespace == "kube-system" && key.name.ends_with("-auth-reader"));
        for (is_right, what) in [
            (is_allowed, "it is in another namespace"),
            (metadata["labels"][OPERATOR_LABEL] == operator, "it has no label"),
            (object.get("status").is_none(), "it has a status"),
            (metadata.get("creationTimestamp").is_none(), "it has a time"),
            (!has_null(object), "it has a null"),
            (
                object["spec"]["template"]["metadata"]["labels"][OPERATOR_LABEL].is_null(),
                "its pods have the label",
            ),
        ] {
            if !is_right {
                wrong.push(format!("{key}: {what}"));
            }
        }
    }
    if serving_certificates(&revision.objects) != revision.certificates {
        wrong.push("the annotations name other certificates".to_owned());
    }
    wrong
}

/// The files of a bundle by way of a file-based catalog; `None` if it does not get into one.
fn by_catalog(files: &[BundleFile], package: &str) -> Option<Vec<BundleFile>> {
    let documents = convert(files).documents;
    let bundle = documents.iter().find(|it| it.value["schema"] == "olm.bundle")?;
    let mut search = BundleSearch::new(package, bundle.value["name"].as_str()?);
    let mut file = search.file("catalog.json");
    for document in &documents {
        file.push(format!("{}\n", document.value).as_bytes());
    }
    file.finish();
    let found = search.finish().expect("it was just written");
    Some(carried_files(package, &found.expect("it was just written")))
}

fn check(root: &Path) {
    let (mut wrong, mut installed, mut carried) = (Vec::new(), 0, 0);
    let configs = [None, Some(json!({ "watchNamespace": WATCHED }))];
    for directory in entries(&root.join("bundles")) {
        let files = bundle_files(&directory);
        let Ok(bundle) = load(&files) else { continue };
        for certificates in CertificateProvider::ALL {
            for config in &configs {
                let Ok(revision) = install(&bundle, config.as_ref(), certificates) else {
                    continue;
                };
                installed += 1;
                let broken = broken(&revision, &bundle.package);
                wrong.extend(broken.into_iter().map(|it| format!("{}: {it}", directory.display())));
            }
        }
        let of = |bundle: &Bundle| install(bundle, None, CertificateProvider::BuiltIn);
        if let Ok(direct) = of(&bundle)
            && let Some(files) = by_catalog(&files, &bundle.package)
        {
            carried += 1;
            let other = load(&files).map_err(|defects| format!("{defects:?}"));
            let other = other.and_then(|it| of(&it).map_err(|defects| format!("{defects:?}")));
            if other.as_ref() != Ok(&direct) {
                wrong.push(format!("{}: another one by a catalog", directory.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(installed > 0 && carried > 0, "{}: nothing to install", root.display());
}

#[test]
fn a_service_with_the_name_of_a_generated_one_adds_to_it() {
    let mut files = bundle_files(&committed().join("bundles/crane"));
    let service = |name: &str| {
        let text = format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, labels: {{a: b}}}}\nspec: \
             {{selector: {{c: d}}, ports: [{{port: 443, targetPort: 1}}, {{port: 9090}}, \
             {{port: 443, protocol: UDP, name: quic}}]}}\n"
        );
        BundleFile { path: format!("manifests/{name}.yaml"), bytes: text.into_bytes() }
    };
    files.push(service("crane-manager-service"));
    files.push(service("other"));
    let bundle = load(&files).expect("it can be loaded");
    let revision = install(&bundle, None, CertificateProvider::BuiltIn).expect("it is rendered");
    let services: Vec<&Value> =
        revision.objects.iter().filter(|it| it["kind"] == "Service").collect();
    let [other, generated] = services[..] else { panic!("{services:?}") };
    assert_eq!(other["metadata"]["name"], "other");
    assert_eq!(generated["metadata"]["name"], "crane-manager-service");
    assert_eq!(generated["metadata"]["labels"]["a"], "b");
    let expected = json!({ "selector": { "app": "crane" }, "ports": [
        { "name": "443", "port": 443, "targetPort": 9443 },
        { "name": "8443", "port": 8443, "targetPort": 8443 },
        { "name": "9090", "port": 9090 },
        { "name": "quic", "port": 443, "protocol": "UDP" },
    ] });
    assert_eq!(generated["spec"], expected);

    // Two of them are two objects of one identity.
    let mut second = service("crane-manager-service");
    second.path = "manifests/second.yaml".to_owned();
    files.push(second);
    let bundle = load(&files).expect("it can be loaded");
    let refused = install(&bundle, None, CertificateProvider::BuiltIn).expect_err("one too many");
    assert!(refused[0].message.contains("is there twice"), "{refused:?}");
}

#[test]
fn installations_are_as_promised() {
    check(&committed());
}

#[test]
fn installations_of_real_bundles_are_as_promised() {
    let Some(directory) = required("PLIMSOLL_BUNDLES").map(PathBuf::from) else { return };
    check(&directory);
}
