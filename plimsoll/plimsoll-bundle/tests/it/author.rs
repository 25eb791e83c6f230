//! What authors are told of bundles against what the validators of operator-framework say.

use std::collections::BTreeSet;
use std::path::Path;

use k8s_testkit::prerequisites::required;
use plimsoll_content::bundle::{BundleSuite, check_suites, convert};
use plimsoll_content::diagnostic::{Diagnostic, Severity};
use plimsoll_resolve::version::parse_tolerant;
use serde_json::Value;

use super::golden::{bundle_files, read_json};

/// A class of answers: the suite, how severe they are, what the texts of the validators contain, and what
/// ours for the same contain.
struct AnswerClass(&'static str, Severity, &'static str, &'static str);

use Severity::{Error, Warning};

const CLASSES: [AnswerClass; 38] = [
    AnswerClass(
        "default",
        Error,
        "invalid service account found in bundle",
        "the service account ",
    ),
    AnswerClass("default", Error, "provided annotation ", ", write it like this"),
    AnswerClass(
        "default",
        Error,
        "example must have a provided API",
        "which the bundle does not own",
    ),
    AnswerClass("default", Error, "invalid example", "alm-examples is not a JSON list"),
    AnswerClass(
        "default",
        Error,
        "csv.Spec.MinKubeVersion has an invalid value",
        "minKubeVersion `",
    ),
    AnswerClass("default", Error, "metadata.name \"", "metadata.name `"),
    AnswerClass("default", Error, "spec.replaces \"", "spec.replaces `"),
    AnswerClass("default", Error, "has an empty image field", "a related image without an image"),
    AnswerClass(
        "default",
        Error,
        "has an invalid image pullspec",
        "` is not a reference to an image",
    ),
    AnswerClass("default", Error, "bundle name with release versioning", "with the release "),
    AnswerClass("default", Error, "required field missing", "the field spec."),
    AnswerClass(
        "default",
        Error,
        "none of InstallModeTypes are supported",
        "no install mode is supported",
    ),
    AnswerClass("default", Error, "must be spec.names.plural", "the name of the definition is `"),
    AnswerClass(
        "default",
        Error,
        "protected groups must have approval",
        " belongs to Kubernetes: ",
    ),
    AnswerClass(
        "default",
        Error,
        "can only be set for deprecated versions",
        " has no deprecationWarning",
    ),
    AnswerClass("default", Error, "spec.versions: Invalid value", "exactly one is stored"),
    AnswerClass("default", Error, "not found in bundle", ", but brings no definition of it"),
    AnswerClass(
        "default",
        Error,
        "cannot set to true, set x-kubernetes",
        "preserveUnknownFields is not ",
    ),
    AnswerClass("default", Warning, "minKubeVersion is not informed", "no minKubeVersion"),
    AnswerClass("default", Warning, "annotations not found", "no annotation alm-examples"),
    AnswerClass("default", Warning, "provided API should have an example", " has no example of "),
    AnswerClass(
        "default",
        Warning,
        "found olm.properties annotation",
        "in the annotation olm.properties",
    ),
    AnswerClass("good-practices", Error, "unable to find a deployment", "no deployment to install"),
    AnswerClass("good-practices", Warning, "has an empty description", " has no description"),
    AnswerClass(
        "good-practices",
        Warning,
        "unable to find the resource requests",
        " requests neither ",
    ),
    AnswerClass(
        "good-practices",
        Warning,
        "permissions to create CRD",
        "it may create definitions",
    ),
    AnswerClass(
        "good-practices",
        Warning,
        "the recommended naming convention: <",
        " has not the form NAME.v",
    ),
    AnswerClass(
        "good-practices",
        Warning,
        "the versioning convention",
        " does not end in a version",
    ),
    AnswerClass(
        "operatorhubv2",
        Error,
        "csv.Spec.Provider.Name not specified",
        "spec.provider.name is ",
    ),
    AnswerClass("operatorhubv2", Error, "csv.Spec.Version must be set", "spec.version is missing"),
    AnswerClass("operatorhubv2", Warning, "csv.Spec.Icon not specified", "spec.icon is missing"),
    AnswerClass("capabilities", Error, "is not a valid capabilities level", "` is none of Basic"),
    AnswerClass(
        "categories",
        Error,
        "is not in the set of standard categories",
        "` is none of AI/",
    ),
    AnswerClass("object", Error, "maxUnavailable field cannot be", "no pod may be unavailable"),
    AnswerClass("object", Error, "minAvailable field cannot be", "all pods have to be available"),
    AnswerClass(
        "object",
        Error,
        "globalDefault field cannot be",
        "it would be the priority of every pod",
    ),
    AnswerClass(
        "object",
        Error,
        "modify default securitycontextconstraints",
        "it may change Security",
    ),
    AnswerClass(
        "object",
        Warning,
        "create/update poddisruptionbudgets",
        "with PodDisruptionBudgets",
    ),
];

/// Answers that we give otherwise, on purpose.
const DIFFERENCES: [(&str, &str); 2] = [
    // Half of the pods is not none of them.
    ("bad-objects", "no pod may be unavailable"),
    ("bad-pdb-percent", "no pod may be unavailable"),
];

/// The suite of ours that answers for one of theirs; those that are not optional have none.
fn suite(upstream: &str) -> Option<BundleSuite> {
    Some(match upstream {
        "good-practices" => BundleSuite::GoodPractices,
        "operatorhubv2" => BundleSuite::OperatorHub,
        "capabilities" => BundleSuite::Capabilities,
        "categories" => BundleSuite::Categories,
        "object" => BundleSuite::Objects,
        "alpha-deprecated-apis" => BundleSuite::RemovedApis,
        _ => return None,
    })
}

#[test]
fn mistakes_are_named_that_the_validators_name() {
    let Some(directory) = required("PLIMSOLL_BUNDLES") else { return };
    let root = Path::new(&directory);
    let answers = read_json(&root.join("bundle-validation.json"));
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for answer in answers.as_array().unwrap() {
        let name = answer["bundle"].as_str().unwrap();
        let bundle = root.join("bundles").join(name);
        // The others are not part of the data, or cannot be loaded by the validators.
        if answer["load"] != "manifests" || !bundle.is_dir() || !answer["loadError"].is_null() {
            continue;
        }
        let upstream = answer["suite"].as_str().unwrap();
        let files = bundle_files(&bundle);
        let defects = match suite(upstream) {
            Some(suite) => {
                let version = answer["options"]["k8s-version"].as_str();
                let version = version.map(|text| parse_tolerant(text).unwrap());
                check_suites(&files, &BTreeSet::from([suite]), version.as_ref())
            }
            None if upstream == "default" => convert(&files).defects,
            None => continue,
        };
        for AnswerClass(_, severity, theirs, ours) in
            CLASSES.iter().filter(|class| class.0 == upstream)
        {
            let expected = texts(answer, *severity).filter(|it| it.contains(theirs)).count();
            let is_ours = |it: &&Diagnostic| it.severity == *severity && it.message.contains(ours);
            let found = defects.iter().filter(is_ours).count();
            let is_different = DIFFERENCES.contains(&(name, ours));
            if (expected != found) != is_different {
                wrong.push(format!("{name}: {ours}: {found} instead of {expected}"));
            } else if found > 0 {
                seen.insert(*theirs);
            }
        }
        if upstream == "alpha-deprecated-apis" {
            removed(name, answer, &defects, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let unseen: Vec<&str> =
        CLASSES.iter().filter(|it| !seen.contains(it.2)).map(|it| it.2).collect();
    assert_eq!(unseen, NEVER, "the others occur");
}

/// Classes that no bundle of the data has.
const NEVER: [&str; 3] = [
    "is not a valid capabilities level",
    "is not in the set of standard categories",
    "create/update poddisruptionbudgets",
];

/// The validators list all objects of a removed API in one answer; ours are one each.
fn removed(name: &str, answer: &Value, defects: &[Diagnostic], wrong: &mut Vec<String>) {
    for severity in [Error, Warning] {
        for minor in ["1.22", "1.25", "1.26"] {
            let theirs = format!("removed in v{minor}.");
            let expected = texts(answer, severity).any(|it| it.contains(&theirs));
            let ours = format!("Kubernetes {minor} and later");
            let is_ours = |it: &Diagnostic| it.severity == severity && it.message.contains(&ours);
            if defects.iter().any(is_ours) != expected {
                let options = &answer["options"];
                wrong.push(format!("{name} {options}: {ours}: {severity:?}, {expected} expected"));
            }
        }
    }
}

fn texts(answer: &Value, severity: Severity) -> impl Iterator<Item = &str> {
    let field = if severity == Error { "errors" } else { "warnings" };
    let answers = answer[field].as_array().into_iter().flatten();
    answers.filter_map(|error| error["detail"].as_str())
}
