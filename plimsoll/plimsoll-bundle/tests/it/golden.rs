//! What upstream's programs make of bundles. Each test checks the small data set in `tests/golden`,
//! which was written for it, and in a second test the full data that `PLIMSOLL_BUNDLES` names.

mod differences;
mod errors;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use k8s_testkit::prerequisites::required;
use plimsoll_bundle::{
    Bundle, CertificateProvider, RenderOptions, RenderedBundle, load, read_config,
    read_deployment_config, render,
};
use plimsoll_content::bundle::BundleFile;
use plimsoll_content::diagnostic::Diagnostic;
use serde_json::Value;

use differences::{DIFFERENCES, Difference};

pub(crate) fn committed() -> PathBuf {
    std::path::absolute("tests/golden").expect("a working directory")
}

pub(crate) fn read_json(path: &Path) -> Value {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("the directory can be read").path()).collect();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("names are UTF-8")
}

pub(crate) fn bundle_files(directory: &Path) -> Vec<BundleFile> {
    let mut files = Vec::new();
    for part in ["manifests", "metadata"] {
        for path in entries(&directory.join(part)) {
            let bytes = fs::read(&path).expect("the file can be read");
            files.push(BundleFile { path: format!("{part}/{}", file_name(&path)), bytes });
        }
    }
    files
}

/// The cases of a directory, by name.
fn cases(directory: &Path) -> BTreeMap<String, Value> {
    let paths = entries(directory);
    let name = |path: &Path| file_name(path).trim_end_matches(".json").to_owned();
    paths.iter().map(|path| (name(path), read_json(path))).collect()
}

type Loaded = BTreeMap<String, Result<Bundle, Vec<Diagnostic>>>;

/// The bundles that cases are of.
fn loaded(root: &Path, cases: &BTreeMap<String, Value>) -> Loaded {
    let mut bundles = Loaded::new();
    for case in cases.values() {
        let name = case["bundle"].as_str().expect("a case names its bundle");
        bundles
            .entry(name.to_owned())
            .or_insert_with(|| load(&bundle_files(&root.join("bundles").join(name))));
    }
    bundles
}

fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn provider(case: &Value) -> CertificateProvider {
    let named = case["certProvider"].as_str().expect("a case names the provider");
    match named {
        "openshift-service-ca" => CertificateProvider::ServiceCa,
        other => *CertificateProvider::ALL
            .iter()
            .find(|provider| provider.as_str() == other)
            .expect("it is a provider"),
    }
}

fn options(case: &Value) -> RenderOptions {
    let options = &case["options"];
    let mut config = options["deploymentConfig"].clone();
    if let Some(fields) = config.as_object_mut() {
        // The renderer passes over it; the front end refuses it, as the tests of configurations say.
        fields.remove("selector");
    }
    RenderOptions {
        install_namespace: options["installNamespace"].as_str().unwrap_or_default().to_owned(),
        target_namespaces: texts(&options["targetNamespaces"]),
        certificates: provider(options),
        deployment_config: read_deployment_config(&config).expect("the configuration is good"),
    }
}

/// The objects of a case; equal ones of other cases are referred to.
fn expected(case: &Value, cases: &BTreeMap<String, Value>) -> Vec<Value> {
    let objects = case["objects"].as_array().expect("the case has objects");
    let resolve = |object: &Value| match object.get("$ref") {
        Some(reference) => {
            let case = reference["case"].as_str().expect("a reference names a case");
            let index = reference["index"].as_u64().and_then(|it| usize::try_from(it).ok());
            cases[case]["objects"][index.expect("a reference has an index")].clone()
        }
        None => object.clone(),
    };
    objects.iter().map(resolve).collect()
}

/// Where two values differ first; numbers may be written in several ways.
fn first_difference(path: &str, ours: &Value, theirs: &Value) -> Option<String> {
    match (ours, theirs) {
        _ if ours == theirs => None,
        (Value::Object(one), Value::Object(other)) => {
            let mut keys: Vec<&String> = one.keys().chain(other.keys()).collect();
            keys.sort();
            keys.dedup();
            keys.into_iter().find_map(|key| match (one.get(key), other.get(key)) {
                (Some(ours), Some(theirs)) => {
                    first_difference(&format!("{path}.{key}"), ours, theirs)
                }
                (ours, theirs) => Some(format!("{path}.{key}: {ours:?}, upstream {theirs:?}")),
            })
        }
        (Value::Array(one), Value::Array(other)) => {
            let pairs = one.iter().zip(other).enumerate();
            let different = |(index, (ours, theirs)): (usize, (&Value, &Value))| {
                first_difference(&format!("{path}[{index}]"), ours, theirs)
            };
            pairs.map(different).find_map(|it| it).or_else(|| {
                let lengths = (one.len(), other.len());
                (lengths.0 != lengths.1)
                    .then(|| format!("{path}: {} items, upstream {}", lengths.0, lengths.1))
            })
        }
        (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64() => None,
        _ => Some(format!("{path}: {ours}, upstream {theirs}")),
    }
}

/// How a result differs from that of a case; `None` if it does not.
fn deviation(
    result: &Result<RenderedBundle, Vec<Diagnostic>>,
    case: &Value,
    cases: &BTreeMap<String, Value>,
    difference: Option<&Difference>,
) -> Option<String> {
    let refused = case["result"] == "error";
    match (result, difference) {
        (Ok(rendered), _) if !refused => {
            let mut expected = expected(case, cases);
            if let Some(difference) = difference {
                difference.apply(&mut expected);
            }
            first_difference("", &Value::Array(rendered.objects.clone()), &expected.into())
        }
        (Ok(_), _) => Some(format!("accepted, upstream: {}", case["errors"])),
        (Err(defects), Some(Difference::Refused(code, _reason))) if !refused => {
            let all = defects.iter().all(|defect| defect.code == *code);
            (!all).then(|| errors::listed(defects))
        }
        (Err(defects), _) if refused => errors::mismatch(defects, &case["errors"], &case["stage"]),
        (Err(defects), _) => Some(errors::listed(defects)),
    }
}

fn check_rendered(root: &Path, directory: &Path) -> Vec<String> {
    let cases = cases(directory);
    let bundles = loaded(root, &cases);
    let mut failures = Vec::new();
    for (name, case) in &cases {
        let bundle = &bundles[case["bundle"].as_str().unwrap_or_default()];
        let result = match bundle {
            Ok(bundle) => render(bundle, &options(case)),
            Err(defects) => Err(defects.clone()),
        };
        let difference =
            DIFFERENCES.iter().find(|(known, _)| known == name).map(|(_, difference)| difference);
        if difference.is_some() && deviation(&result, case, &cases, None).is_none() {
            failures.push(format!("{name}: agrees, though the table says it does not"));
        }
        if let Some(text) = deviation(&result, case, &cases, difference) {
            failures.push(format!("{name}: {text}"));
        }
        failures.extend(bundle.iter().filter_map(|bundle| front_end(name, bundle, case)));
    }
    assert!(!cases.is_empty(), "{}: no cases", directory.display());
    failures
}

/// The way of a configuration to a verdict, which is that of upstream's controller. That one refuses
/// webhooks without a provider of certificates; here there is always the built-in one.
fn front_end(name: &str, bundle: &Bundle, case: &Value) -> Option<String> {
    let front_end = case.get("frontend")?;
    let error = front_end["error"].as_str().unwrap_or_default();
    let is_different = DIFFERENCES
        .iter()
        .any(|(known, difference)| *known == name && matches!(difference, Difference::Refused(..)));
    if error.contains("certificate provider is nil") || is_different {
        return None;
    }
    let verdict = configured(bundle, &case["options"], &front_end["config"]).map(|_| ());
    match (verdict, front_end["result"] == "objects") {
        (Ok(()), true) | (Err(_), false) => None,
        (Ok(()), false) => Some(format!("{name}: configured, upstream: {error}")),
        (Err(text), true) => Some(format!("{name}: {text}, upstream configures it")),
    }
}

fn configured(bundle: &Bundle, options: &Value, config: &Value) -> Result<RenderedBundle, String> {
    let install_namespace = options["installNamespace"].as_str().unwrap_or_default();
    let config = read_config(bundle, install_namespace, config).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        lines.join("\n")
    })?;
    let options = RenderOptions {
        install_namespace: install_namespace.to_owned(),
        target_namespaces: config.watch_namespace.into_iter().collect(),
        certificates: provider(options),
        deployment_config: config.deployment,
    };
    render(bundle, &options).map_err(|defects| errors::listed(&defects))
}

/// Configurations that upstream refuses, and we take.
const ACCEPTED: &[&str] = &["hm-depcfg--config-dep-null"];

fn check_config(root: &Path) -> Vec<String> {
    let cases = cases(&root.join("config"));
    let bundles = loaded(root, &cases);
    let mut failures = Vec::new();
    for (name, case) in &cases {
        let bundle = &bundles[case["bundle"].as_str().unwrap_or_default()];
        let bundle = bundle.as_ref().unwrap_or_else(|defects| panic!("{name}: {defects:?}"));
        let accepted = ACCEPTED.contains(&name.as_str());
        match (configured(bundle, case, &case["config"]), case["result"] == "objects") {
            (Ok(rendered), true) => {
                assert!(!accepted, "{name}: upstream takes it, too");
                if rendered.objects.len() as u64 != case["objectCount"] {
                    failures.push(format!("{name}: {} objects", rendered.objects.len()));
                }
                let deployment = rendered.objects.iter().find(|it| it["kind"] == "Deployment");
                let deployment = deployment.expect("the bundle has a deployment");
                let annotations = &deployment["spec"]["template"]["metadata"]["annotations"];
                let targets = &annotations["olm.targetNamespaces"];
                if *targets != case["targetNamespacesAnnotation"] {
                    failures.push(format!("{name}: watches {targets}"));
                }
            }
            (Ok(_), false) if accepted => {}
            (Ok(_), false) => {
                failures.push(format!("{name}: accepted, upstream: {}", case["error"]))
            }
            (Err(text), true) => failures.push(format!("{name}: {text}")),
            (Err(text), false) => failures.extend(
                errors::unnamed_fields(&text, case["error"].as_str().unwrap_or_default())
                    .map(|field| format!("{name}: {field} is not named in: {text}")),
            ),
        }
    }
    assert!(!cases.is_empty(), "{}: no configurations", root.display());
    failures
}

#[track_caller]
fn assert_none(failures: &[String]) {
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn rendering_agrees() {
    assert_none(&check_rendered(&committed(), &committed().join("rendered")));
}

#[test]
fn configurations_agree() {
    assert_none(&check_config(&committed()));
}

#[test]
fn rendering_agrees_with_upstream() {
    let Some(directory) = required("PLIMSOLL_BUNDLES").map(PathBuf::from) else { return };
    assert_none(&check_rendered(&directory, &directory.join("rendered")));
    let fixtures = directory.join("upstream-fixtures");
    assert_none(&check_rendered(&fixtures, &fixtures.join("rendered")));
}

#[test]
fn configurations_agree_with_upstream() {
    let Some(directory) = required("PLIMSOLL_BUNDLES").map(PathBuf::from) else { return };
    assert_none(&check_config(&directory));
}
