//! What authors are told of bundles against what the validators of operator-framework say.

use std::collections::BTreeSet;
use std::path::Path;

use k8s_testkit::prerequisites::required;
use plimsoll_content::bundle::convert;
use serde_json::Value;

use super::golden::{bundle_files, read_json};

/// Answers of the validators (how their texts begin), and what ours for the same contain.
const CLASSES: [(&str, &str); 4] = [
    ("invalid service account found in bundle", "the service account "),
    ("provided annotation ", ", write it like this"),
    ("example must have a provided API", "alm-examples has a "),
    ("csv.Spec.MinKubeVersion has an invalid value", "minKubeVersion `"),
];

#[test]
fn mistakes_are_named_that_the_validators_name() {
    let Some(directory) = required("PLIMSOLL_BUNDLES") else { return };
    let root = Path::new(&directory);
    let answers = read_json(&root.join("bundle-validation.json"));
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for answer in answers.as_array().unwrap() {
        let name = answer["bundle"].as_str().unwrap();
        let bundle = root.join("bundles").join(name);
        let is_default = answer["suite"] == "default" && answer["load"] == "manifests";
        // The others are not part of the data, or cannot be loaded by the validators.
        if !is_default || !bundle.is_dir() || !answer["loadError"].is_null() {
            continue;
        }
        let expected: Vec<&str> = details(&answer["errors"]).collect();
        let defects = convert(&bundle_files(&bundle)).defects;
        for (upstream, ours) in CLASSES {
            let expected = expected.iter().filter(|it| it.contains(upstream)).count();
            let found = defects.iter().filter(|it| it.message.contains(ours)).count();
            if expected != found {
                wrong.push(format!("{name}: {ours}: {found} instead of {expected}"));
            } else if found > 0 {
                seen.insert(ours);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen.len(), CLASSES.len(), "every class occurs: {seen:?}");
}

fn details(errors: &Value) -> impl Iterator<Item = &str> {
    errors.as_array().into_iter().flatten().filter_map(|error| error["detail"].as_str())
}
