//! Feature gates of clusters, by the objects that list them.

use plimsoll_content::Payload;
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_content::payload::{Directory, SourceFile, TemplateContext, parse};
use serde_json::{Value, json};

use super::Features;

const METADATA: &str = r#"{"kind":"cincinnati-metadata-v0","version":"1.0.0"}"#;

const REFERENCES: &str =
    r#"{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"1.0.0"}}"#;

/// A FeatureGate manifest for a feature set.
fn gates(set: &str, enabled: &str) -> String {
    format!(
        "apiVersion: config.openshift.io/v1\nkind: FeatureGate\nmetadata:\n  name: cluster\n  \
         annotations:\n    include.release.openshift.io/{DEFAULT_PROFILE}: \"true\"\n    \
         release.openshift.io/feature-set: {set}\nstatus:\n  featureGates:\n  - version: \"\"\n    \
         enabled: [{{name: {enabled}}}]\n"
    )
}

fn payload() -> Payload {
    let file = |name: &str, text: &str| SourceFile {
        directory: Directory::ReleaseManifests,
        name: name.to_owned(),
        bytes: text.to_owned().into(),
    };
    let files = [
        file("release-metadata", METADATA),
        file("image-references", REFERENCES),
        file("0000_05_a_01.yaml", &gates("Default", "Steady")),
        file("0000_05_a_02.yaml", &gates("TechPreviewNoUpgrade", "Bold")),
    ];
    let context = TemplateContext {
        release_image: String::new(),
        cluster_profile: DEFAULT_PROFILE.to_owned(),
    };
    parse(&files, &context).unwrap()
}

fn check(feature_gate: &Value, set: &str, gates: &[&str]) {
    let features = Features::of_cluster(feature_gate);
    let found = features.gates(&payload(), DEFAULT_PROFILE);
    assert_eq!(features.set, set, "{feature_gate}");
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), gates, "{feature_gate}");
}

#[test]
fn the_status_tells_the_gates_of_a_version_and_the_payload_does_otherwise() {
    let status = |version: &str| json!({ "featureGates": [{ "version": version, "enabled": [{ "name": "Listed" }] }] });
    let preview = json!({ "featureSet": "TechPreviewNoUpgrade" });
    check(&json!({}), "Default", &["Steady"]);
    check(&json!({ "spec": preview }), "TechPreviewNoUpgrade", &["Bold"]);
    check(
        &json!({ "spec": preview, "status": status("1.0.0") }),
        "TechPreviewNoUpgrade",
        &["Listed"],
    );
    check(
        &json!({ "spec": preview, "status": status("0.9.0") }),
        "TechPreviewNoUpgrade",
        &["Bold"],
    );
    check(&json!({ "spec": { "featureSet": 7 }, "status": [] }), "Default", &["Steady"]);
}

#[test]
fn custom_gates_are_switched_from_the_default_ones() {
    let custom = json!({ "enabled": ["Brave"], "disabled": ["Steady"] });
    let spec = |set: &str| json!({ "spec": { "featureSet": set, "customNoUpgrade": custom } });
    check(&spec("CustomNoUpgrade"), "CustomNoUpgrade", &["Brave"]);
    check(&spec(""), "Default", &["Steady"]);
}

#[test]
fn a_change_is_reported_and_what_makes_no_difference_is_none() {
    let reported = |before: &Value, after: &Value| {
        let [before, after] = [before, after].map(Features::of_cluster);
        after.change(&before, &payload(), DEFAULT_PROFILE)
    };
    let default = json!({});
    let preview = json!({ "spec": { "featureSet": "TechPreviewNoUpgrade" } });
    let other = json!({ "status": { "featureGates": [{ "version": "2.0.0", "enabled": [] }] } });
    assert_eq!(reported(&default, &other), None);
    assert_eq!(
        reported(&default, &preview).as_deref(),
        Some(
            "The feature set is TechPreviewNoUpgrade, it was Default; feature gates now enabled: \
             Bold; feature gates now disabled: Steady"
        )
    );
}
