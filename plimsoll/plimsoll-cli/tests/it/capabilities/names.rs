//! Names of capabilities: which ones the definition of ClusterVersion accepts, and what the controller
//! does with the others.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use plimsoll_api::CLUSTER_VERSION;
use plimsoll_content::Payload;
use plimsoll_content::payload::{Directory, SourceFile};
use plimsoll_simulation::sample;
use serde_json::{Value, json};

use super::{asking, enabled, installed, with_customs_optional};
use crate::harness::{
    DEFINITION, Harness, OperatorSetup, condition, on_any_cluster, on_each_cluster, sample_payload,
    sample_payloads, until,
};

/// The sample, which declares a capability and has no others.
fn declaring(capability: &str, files: Vec<SourceFile>) -> Arc<Payload> {
    let text = json!({
        "apiVersion": "plimsoll.io/v1alpha1",
        "kind": "ReleaseCapabilities",
        "metadata": {
            "name": "capabilities",
            "annotations": { "include.release.openshift.io/self-managed-high-availability": "true" },
        },
        "spec": {
            "omitBuiltIn": true,
            "capabilities": [{ "name": capability, "description": "A part." }, { "name": "Console", "description": "Another." }],
        },
    });
    let mut files = files;
    files.push(SourceFile {
        directory: Directory::ReleaseManifests,
        name: "0000_00_harbour_capabilities.yaml".to_owned(),
        bytes: text.to_string().into_bytes().into(),
    });
    sample_payload(&files)
}

#[test]
fn our_definition_accepts_the_names_of_the_release() {
    on_each_cluster(|kind| async move {
        let payloads = [declaring("Lights", sample::v1()), declaring("Bells", sample::v2())];
        let mut harness = Harness::start(kind, &payloads, OperatorSetup::default()).await;
        let versions = harness.api(CLUSTER_VERSION);
        let requests = |capabilities: Value| {
            let versions = versions.clone();
            async move {
                let patch = json!({ "spec": { "capabilities": capabilities } });
                let options = PatchParams { dry_run: true, ..PatchParams::default() };
                let answer = versions.patch("version", &options, &Patch::Merge(&patch)).await;
                answer.err().map(|error| error.to_string())
            }
        };
        harness.control();
        harness.completed(&payloads[0].release.version).await;
        let bells = || requests(asking("None", &["Bells"]));
        let is_refused = |error: &Option<String>, name: &str| {
            let unsupported = format!("Unsupported value: \"{name}\"");
            error.as_ref().is_some_and(|it| it.contains(&unsupported))
        };
        let refusal = until("unknown names are refused", bells, |it| is_refused(it, "Bells")).await;
        let refusal = refusal.expect("it is refused");
        assert!(refusal.contains("\"Lights\""), "{refusal}");
        assert_eq!(requests(asking("None", &["Lights"])).await, None);
        let refusal = requests(asking("v4.11", &[])).await;
        assert!(is_refused(&refusal, "v4.11"), "the release has no such set: {refusal:?}");

        harness.set_spec(json!({ "capabilities": asking("None", &["Lights"]) })).await;
        harness.release(&payloads[1]);
        harness.completed(&payloads[1].release.version).await;
        until("the names of the next release are accepted", bells, Option::is_none).await;
        // What the spec has already is no reason to refuse other changes. The controller may have seen
        // the release before the spec.
        let both = || requests(asking("None", &["Lights", "Bells"]));
        until("the name that is requested already stays accepted", both, Option::is_none).await;
        harness.set_spec(json!({ "channel": "stable" })).await;
        assert_eq!(both().await, None);
        let refusal = requests(asking("None", &["Horns"])).await;
        assert!(is_refused(&refusal, "Horns"), "{refusal:?}");
        harness.stop().await;
    });
}

#[test]
fn a_name_that_does_not_exist_has_no_effect_and_is_reported() {
    on_any_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let mut harness = installed(kind, &[Arc::clone(&first)], &asking("None", &[])).await;
        harness.set_spec(json!({ "capabilities": asking("None", &["Consle"]) })).await;
        let status = harness
            .cluster_version_until(|status| condition(status, "Invalid")["status"] == "True")
            .await;
        let message = condition(&status, "Invalid")["message"].as_str().unwrap_or_default();
        assert!(message.contains("did you mean \"Console\"?"), "{message}");
        assert_eq!(enabled(&status), BTreeSet::new());
        harness.set_spec(json!({ "capabilities": asking("None", &[]) })).await;
        harness.cluster_version_until(|status| condition(status, "Invalid").is_null()).await;
        harness.stop().await;
    });
}

/// What a server says of Build where a definition does not list it.
const UNSUPPORTED_BUILD: &str = "Unsupported value: \"Build\"";

/// Sets the capabilities that the definition of ClusterVersion lets the status name, without Build;
/// none for any. The definition is another client's from then on, so that it stays so.
async fn enumerate(harness: &Harness, names: Option<&[&str]>) {
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/capabilities\
                /properties/enabledCapabilities/items";
    let items = match names {
        None => json!({ "type": "string" }),
        Some(names) => json!({ "type": "string", "enum": names }),
    };
    let patch: json_patch::Patch = serde_json::from_value(json!([
        { "op": "replace", "path": path, "value": items },
        { "op": "add", "path": "/metadata/labels", "value": {} },
    ]))
    .expect("a patch");
    let parameters = PatchParams::default();
    harness
        .api(DEFINITION)
        .patch("clusterversions.config.openshift.io", &parameters, &Patch::Json::<()>(patch))
        .await
        .expect("the definition can be changed");
    // A server takes up a changed definition a moment later.
    let status = json!({ "capabilities": { "enabledCapabilities": ["Build"] } });
    let trial = Patch::Merge(json!({ "status": status }));
    let (api, parameters) = (harness.api(CLUSTER_VERSION), parameters.dry_run());
    let is_accepted = || async {
        match api.patch_status("version", &parameters, &trial).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.message.contains(UNSUPPORTED_BUILD) => {
                Ok(false)
            }
            Err(error) => Err(error.to_string()),
        }
    };
    let is_taken_up = |it: &Result<bool, String>| *it == Ok(names.is_none());
    until("the definition is taken up", is_accepted, is_taken_up).await.expect("it is taken up");
}

#[test]
fn the_status_is_written_though_the_definition_lacks_a_name() {
    on_each_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let second = with_customs_optional();
        let payloads = [Arc::clone(&first), Arc::clone(&second)];
        let mut harness = installed(kind, &payloads, &asking("None", &["Insights"])).await;
        enumerate(&harness, Some(&["Insights", "Console"])).await;
        harness.release(&second);
        harness.completed(&second.release.version).await;
        let status = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
        assert_eq!(enabled(&status), BTreeSet::from(["Insights"]), "Build cannot be named");
        let withheld = |harness: Value| harness["capabilities"]["withheld"].clone();
        assert_eq!(withheld(harness.progress().await), json!(["Build"]));
        // A process that comes after it knows all the same.
        harness.stop().await;
        harness.control();
        let view = harness.until(|view| view.completed).await;
        assert!(view.capabilities.enabled.contains("Build"));
        enumerate(&harness, None).await;
        harness.cluster_version_until(|status| enabled(status).contains("Build")).await;
        harness.stop().await;
        assert_eq!(withheld(harness.progress().await), json!([]));
    });
}
