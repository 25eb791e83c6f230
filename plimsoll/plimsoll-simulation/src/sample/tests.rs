//! The sample release is a payload in good order, and shows what it is meant to show.

use std::collections::BTreeSet;
use std::path::Path;

use plimsoll_content::Payload;
use plimsoll_content::inclusion::{DEFAULT_PROFILE, Decision, decide};
use plimsoll_content::lint::lint;
use plimsoll_content::payload::{SourceFile, TemplateContext, parse};
use plimsoll_plan::plan::graph::position;

use super::files::{CATALOG, FILES};
use super::{v1, v2};

fn payload(files: &[SourceFile]) -> Payload {
    let template = TemplateContext {
        release_image: "example.com/release".into(),
        cluster_profile: DEFAULT_PROFILE.into(),
    };
    parse(files, &template).unwrap()
}

fn included(payload: &Payload, feature_set: &str) -> BTreeSet<String> {
    let context = payload.context(DEFAULT_PROFILE, feature_set);
    let included = payload.manifests.iter().filter(|it| decide(it, &context) == Decision::Included);
    included.map(|manifest| manifest.key.to_string()).collect()
}

/// The files below a directory, relative to it, in order.
fn listed(root: &Path) -> Vec<String> {
    let (mut directories, mut files) = (vec![root.to_owned()], Vec::new());
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => directories.push(path),
                false => files.push(path.strip_prefix(root).unwrap().display().to_string()),
            }
        }
    }
    files.sort();
    files
}

#[test]
fn all_files_of_the_samples_are_embedded() {
    let examples = std::path::absolute("../../examples").expect("a working directory");
    for (directory, files) in [("payloads", FILES), ("catalog", CATALOG)] {
        let expected = listed(&examples.join(directory));
        assert_eq!(files.iter().map(|(path, _)| *path).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn both_versions_are_payloads_without_warnings() {
    for (files, version) in [(v1(), "1.0.0"), (v2(), "1.1.0")] {
        let payload = payload(&files);
        assert_eq!(payload.release.version, version);
        assert_eq!(payload.warnings, []);
    }
}

#[test]
fn lint_finds_nothing_but_what_the_program_or_an_operator_brings_itself() {
    for files in [v1(), v2()] {
        let findings = lint(&files, &TemplateContext::default());
        let unexpected: Vec<String> = findings
            .iter()
            .map(ToString::to_string)
            .filter(|text| !text.ends_with("defines ClusterOperator.config.openshift.io"))
            .filter(|text| !text.contains("creates the namespace \"harbour-crane-operand\""))
            .collect();
        assert_eq!(unexpected, Vec::<String>::new());
    }
}

#[test]
fn there_are_enough_manifests_levels_and_operators() {
    for files in [v1(), v2()] {
        let payload = payload(&files);
        let names = || payload.manifests.iter().filter_map(|it| position(&it.file));
        let levels: BTreeSet<u32> = names().map(|it| it.level).collect();
        let components: BTreeSet<_> = names().collect();
        assert!(payload.manifests.len() >= 60, "{}", payload.manifests.len());
        assert!(levels.len() >= 6, "{levels:?}");
        assert!(components.len() > levels.len(), "no level has parallel components");
        let operators = payload.manifests.iter().filter(|it| it.key.kind == "ClusterOperator");
        assert_eq!(operators.count(), 8);
    }
}

#[test]
fn an_update_changes_every_operator() {
    let (first, second) = (payload(&v1()), payload(&v2()));
    for manifest in first
        .manifests
        .iter()
        .filter(|it| ["Deployment", "DaemonSet", "ClusterOperator"].contains(&it.key.kind.as_str()))
    {
        let next =
            second.manifests.iter().find(|it| it.key == manifest.key && it.file == manifest.file);
        assert_ne!(next.unwrap().raw, manifest.raw, "{}", manifest.key);
    }
    let (first, second) = (included(&first, "Default"), included(&second, "Default"));
    assert_eq!(first.difference(&second).count(), 0);
    assert!(second.contains("deployment.apps \"harbour-logbook/logbook\""));
}

#[test]
fn what_is_for_others_is_left_out() {
    let payload = payload(&v1());
    let autopilot = "configmap \"harbour-pilot/autopilot\"";
    assert!(!included(&payload, "Default").contains(autopilot));
    assert!(included(&payload, "TechPreviewNoUpgrade").contains(autopilot));
    let hosted = payload.manifests.iter().filter(|it| it.file.contains("hosted"));
    let context = payload.context(DEFAULT_PROFILE, "Default");
    for manifest in hosted {
        assert!(matches!(decide(manifest, &context), Decision::Excluded(_)));
    }
}
