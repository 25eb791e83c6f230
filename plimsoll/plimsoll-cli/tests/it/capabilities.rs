//! Optional parts of a release on whole clusters (CAP-17 to CAP-22; CVS-55 to CVS-61).

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Parser;
use k8s_testkit::ClusterKind;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use plimsoll_api::config::ClusterVersionSpec;
use plimsoll_api::{ApiKind, CLUSTER_VERSION};
use plimsoll_cli::commands::deploy::{ManifestsArguments, manifests};
use plimsoll_cli::commands::run::{RunArguments, new_spec};
use plimsoll_content::Payload;
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_content::payload::{Directory, SourceFile};
use plimsoll_controller::{Reached, WebhookSettings};
use plimsoll_plan::capabilities::implied_by_update;
use plimsoll_plan::plan::features::Features;
use plimsoll_simulation::sample;
use serde_json::{Value, json};

use crate::harness::{
    DEFINITION, Harness, OperatorSetup, Terminal, condition, on_any_cluster, on_each_cluster,
    outside_payload, sample_payload, sample_payloads, until,
};
use crate::install::{create_cluster_version, create_with_overrides};

const NAMESPACE: ApiKind =
    ApiKind { group: "", version: "v1", kind: "Namespace", plural: "namespaces" };
/// The namespace of the sample's part of capability Console.
const LOOKOUT: &str = "harbour-lookout";
/// The namespace of a part that every cluster has.
const CUSTOMS: &str = "harbour-customs";

fn enabled(status: &Value) -> BTreeSet<&str> {
    let names = status["capabilities"]["enabledCapabilities"].as_array();
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn asking(set: &str, additional: &[&str]) -> Value {
    json!({ "baselineCapabilitySet": set, "additionalEnabledCapabilities": additional })
}

/// A cluster at the first of some payloads that was asked for some capabilities.
async fn installed(kind: ClusterKind, payloads: &[Arc<Payload>], capabilities: &Value) -> Harness {
    let mut harness = Harness::start(kind, payloads, OperatorSetup::default()).await;
    create_cluster_version(&harness, capabilities).await;
    harness.control();
    harness.completed(&payloads[0].release.version).await;
    harness
}

async fn exists(harness: &Harness, namespace: &str) -> bool {
    harness.get(NAMESPACE, namespace).await.is_object()
}

/// The second version of the sample, where the customs belong to capability Build.
fn with_customs_optional() -> Arc<Payload> {
    let mut files = sample::v2();
    for file in files.iter_mut().filter(|file| file.name.contains("_customs_")) {
        let text = std::str::from_utf8(&file.bytes).expect("the sample is text");
        let annotated = text.replace(
            "  annotations:\n",
            "  annotations:\n    capability.openshift.io/name: Build\n",
        );
        file.bytes = annotated.into();
    }
    sample_payload(&files)
}

#[test]
fn an_admin_enables_a_capability_after_installing_and_cannot_disable_it() {
    on_any_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let mut harness = installed(kind, &[Arc::clone(&first)], &asking("None", &[])).await;
        assert!(!exists(&harness, LOOKOUT).await, "Console is not asked for");
        let status = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
        assert_eq!(enabled(&status), BTreeSet::new());
        assert_eq!(status["capabilities"]["knownCapabilities"].as_array().map(Vec::len), Some(17));

        harness.set_spec(json!({ "capabilities": asking("None", &["Console"]) })).await;
        harness.cluster_version_until(|status| enabled(status).contains("Console")).await;
        harness
            .until(|view| {
                view.completed && view.mode == Some(plimsoll_plan::plan::mode::Mode::Reconciling)
            })
            .await;
        assert!(exists(&harness, LOOKOUT).await, "Console is enabled");

        let implicit = "ImplicitlyEnabledCapabilities";
        harness.set_spec(json!({ "capabilities": asking("None", &[]) })).await;
        let kept = |status: &Value| condition(status, implicit)["status"] == "True";
        let status = harness.cluster_version_until(kept).await;
        let message = "The following capabilities could not be disabled: Console";
        assert_eq!(condition(&status, implicit)["message"], message);
        assert!(exists(&harness, LOOKOUT).await);

        // CVS-56: a restart changes nothing, asking for it again does.
        harness.stop().await;
        harness.control();
        harness.until(|view| view.completed).await;
        let status = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
        assert_eq!(condition(&status, implicit)["message"], message);
        harness.set_spec(json!({ "capabilities": asking("None", &["Console"]) })).await;
        harness
            .cluster_version_until(|status| condition(status, implicit)["status"] == "False")
            .await;
        harness.stop().await;
    });
}

#[test]
fn a_capability_is_enabled_by_a_command() {
    on_each_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let mut harness = installed(kind, &[first], &asking("None", &[])).await;
        let terminal = Terminal::open(&harness.cluster).await;
        let printed = terminal.run("capability enable Console --dry-run").await;
        assert_eq!(printed, "capability Console is requested (dry run)\n");
        let spec = harness.get(CLUSTER_VERSION, "version").await["spec"].clone();
        assert_eq!(spec["capabilities"]["additionalEnabledCapabilities"], json!([]), "{kind}");
        let printed = terminal.run("capability enable Console").await;
        assert_eq!(printed, "capability Console is requested\n");
        harness.cluster_version_until(|status| enabled(status).contains("Console")).await;
        until("the part exists", || exists(&harness, LOOKOUT), |it| *it).await;
        let printed = terminal.run("capability enable Console").await;
        assert_eq!(printed, "capability Console is enabled already\n");
        harness.stop().await;
    });
}

/// The release that the examples begin with, which the first sample is.
const RELEASE: &str = "../../examples/payloads/v1.0.0";

#[derive(Parser)]
struct RunLine {
    #[command(flatten)]
    arguments: RunArguments,
}

#[derive(Parser)]
struct ManifestsLine {
    #[command(flatten)]
    arguments: ManifestsArguments,
}

/// What `plimsoll run` creates a ClusterVersion with.
fn created_by(options: &[&str]) -> Option<ClusterVersionSpec> {
    let (first, _) = sample_payloads();
    let options = ["run", "--release", RELEASE].iter().chain(options);
    let arguments = RunLine::parse_from(options).arguments;
    new_spec(&arguments, &first).expect("it is valid")
}

/// The options of the controller that `plimsoll manifests` deploys, but for its release.
fn deployed_with(options: &[&str]) -> Vec<String> {
    let deploy = ["manifests", "--release", RELEASE, "--image", "p", "--release-image", "r"];
    let arguments = ManifestsLine::parse_from(deploy.iter().chain(options)).arguments;
    let mut out = Vec::new();
    manifests(&arguments, &mut out).expect("they are rendered");
    let out = String::from_utf8(out).expect("it is text");
    let objects = plimsoll_content::yaml::parse(&out).into_iter();
    let deployment = objects
        .map(|document| document.value.expect("it is YAML"))
        .find(|object| object["kind"] == "Deployment")
        .expect("there is a Deployment");
    let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    let arguments = arguments.as_array().expect("it has arguments");
    let arguments: Vec<String> =
        arguments.iter().map(|it| it.as_str().expect("it is text").to_owned()).collect();
    assert_eq!(arguments[..2], ["run", "--release=/release"]);
    arguments[2..].to_vec()
}

#[test]
fn a_new_cluster_has_what_was_chosen_and_nothing_else() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let config = "platform: {none: {}}\ncapabilities:\n  baselineCapabilitySet: None\n  \
                  additionalEnabledCapabilities: [Ingress]\n";
    std::fs::write(file.path(), config).expect("it is written");
    let config = file.path().to_str().expect("it is text").to_owned();
    on_any_cluster(move |kind| {
        let config = config.clone();
        async move {
            let choices: [(&[&str], &[&str]); 3] = [
                (&["--baseline", "None"], &[]),
                (&["--baseline", "None", "--capability", "Console"], &["Console"]),
                (&["--install-config", &config], &["Ingress"]),
            ];
            for (options, expected) in choices {
                let by_hand = created_by(&[options, &["--create"]].concat());
                let deployed = deployed_with(options);
                let deployed: Vec<&str> = deployed.iter().map(String::as_str).collect();
                let deployed = created_by(&deployed).expect("it creates a ClusterVersion");
                let by_hand = by_hand.expect("it creates a ClusterVersion");
                assert_eq!(deployed.capabilities, by_hand.capabilities, "{options:?}");

                let (first, _) = sample_payloads();
                let mut harness =
                    Harness::start(kind, &[Arc::clone(&first)], OperatorSetup::default()).await;
                harness.settings.create = Some(deployed.clone());
                harness.control();
                harness.completed(&first.release.version).await;
                let expected = BTreeSet::from_iter(expected.iter().copied());
                let object = harness.get(CLUSTER_VERSION, "version").await;
                assert_eq!(enabled(&object["status"]), expected, "{options:?}");
                assert_eq!(object["spec"]["clusterID"], deployed.cluster_id);
                assert_eq!(exists(&harness, LOOKOUT).await, expected.contains("Console"));
                harness.stop().await;

                // One that exists is not changed.
                harness.settings.create = created_by(&["--create", "--baseline", "v4.18"]);
                harness.control();
                harness.until(|view| view.completed).await;
                let again = harness.get(CLUSTER_VERSION, "version").await;
                assert_eq!(again["spec"], object["spec"], "{options:?}");
                assert_eq!(enabled(&again["status"]), expected, "{options:?}");
                harness.stop().await;
            }
        }
    });
}

#[test]
fn filterable_resources_wait_for_the_cluster_version() {
    on_any_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let mut harness =
            Harness::start(kind, &[Arc::clone(&first)], OperatorSetup::default()).await;
        harness.settings.create = None;
        harness.control();
        let ours = || harness.get(DEFINITION, "releaseprogresses.plimsoll.io");
        until("our kind is defined", ours, |definition| !definition.is_null()).await;
        assert!(!exists(&harness, CUSTOMS).await, "nothing is applied yet");
        create_cluster_version(&harness, &asking("None", &[])).await;
        harness.completed(&first.release.version).await;
        assert!(!exists(&harness, LOOKOUT).await, "it was filtered from the first moment");
        assert!(exists(&harness, CUSTOMS).await);
        harness.stop().await;
    });
}

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

/// What an update that made Build necessary has left behind.
async fn assert_build_implied(harness: &Harness, second: &Payload) {
    let status = harness.get(CLUSTER_VERSION, "version").await["status"].clone();
    assert_eq!(enabled(&status), BTreeSet::from(["Build"]));
    let implicit = condition(&status, "ImplicitlyEnabledCapabilities");
    assert_eq!(implicit["message"], "The following capabilities could not be disabled: Build");
    let implied = harness.progress().await["capabilities"]["implied"].clone();
    assert_eq!(implied.as_array().map(Vec::len), Some(1), "{implied:#}");
    assert_eq!(implied[0]["capability"], "Build");
    assert_eq!(implied[0]["version"], second.release.version);
    assert_eq!(implied[0]["file"], "0000_50_customs_00_namespace.yaml");
    assert_eq!(implied[0]["object"], "namespace \"harbour-customs\"");
}

#[test]
fn an_update_enables_what_it_makes_necessary_and_says_why() {
    on_any_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let second = with_customs_optional();
        let payloads = [Arc::clone(&first), Arc::clone(&second)];
        let mut harness = installed(kind, &payloads, &asking("None", &[])).await;
        harness.release(&second);
        harness.completed(&second.release.version).await;
        assert_build_implied(&harness, &second).await;
        // What is new in a disabled capability stays away.
        assert!(!exists(&harness, LOOKOUT).await);
        let event = || async {
            let mut events = harness.events().await.into_iter();
            events.find(|it| it["reason"] == "CapabilityImplied").unwrap_or_default()
        };
        let event = until("the event is written", event, Value::is_object).await;
        let note = event["note"].as_str().unwrap_or_default();
        assert!(note.starts_with("capability Build becomes enabled: "), "{note}");
        harness.stop().await;
    });
}

#[test]
fn starting_with_the_next_release_finds_capabilities_it_implies() {
    on_any_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let second = with_customs_optional();
        let payloads = [Arc::clone(&first), Arc::clone(&second)];
        let mut harness = installed(kind, &payloads, &asking("None", &[])).await;
        harness.stop().await;
        harness.release(&second);
        harness.control();
        harness.completed(&second.release.version).await;
        assert_build_implied(&harness, &second).await;
        harness.stop().await;
    });
}

/// What a server says of Build where a definition does not list it.
const UNSUPPORTED_BUILD: &str = "Unsupported value: \"Build\"";

/// Sets the capabilities that the definition of ClusterVersion lets the status name, without Build;
/// none for any.
async fn enumerate(harness: &Harness, names: Option<&[&str]>) {
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/capabilities\
                /properties/enabledCapabilities/items";
    let items = match names {
        None => json!({ "type": "string" }),
        Some(names) => json!({ "type": "string", "enum": names }),
    };
    let patch: json_patch::Patch =
        serde_json::from_value(json!([{ "op": "replace", "path": path, "value": items }]))
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

#[test]
fn the_webhook_answers_a_mistake_with_400_and_what_to_do() {
    on_each_cluster(|kind| async move {
        let (first, _) = sample_payloads();
        let mut harness =
            Harness::start(kind, &[Arc::clone(&first)], OperatorSetup::default()).await;
        create_cluster_version(&harness, &asking("None", &["Console"])).await;
        harness.settings.capability_webhook = Some(WebhookSettings {
            listen: "127.0.0.1:0".parse().expect("an address"),
            reached: Reached::Host("127.0.0.1".to_owned()),
        });
        harness.control();
        harness.completed(&first.release.version).await;
        for (additional, says) in [
            (vec![], "Console is enabled, and what is enabled cannot be disabled; keep it"),
            (vec!["Console", "Insigths"], "did you mean \"Insights\"?"),
            (vec!["Console", "baremetal"], "baremetal requires MachineAPI; add: MachineAPI"),
        ] {
            let error = refused(&harness, &asking("None", &additional)).await;
            assert_eq!(error.code, 400, "{error:?}");
            assert!(error.message.contains(says), "{}", error.message);
            assert!(error.message.contains("capabilities.plimsoll.io"), "{}", error.message);
        }
        harness.set_spec(json!({ "capabilities": asking("None", &["Console", "Insights"]) })).await;
        harness.cluster_version_until(|status| enabled(status).contains("Insights")).await;
        // Another one has the same certificate; without the flag there is no webhook any more.
        harness.stop().await;
        harness.settings.capability_webhook = None;
        harness.control();
        harness.until(|view| view.completed).await;
        harness.set_spec(json!({ "capabilities": asking("None", &[]) })).await;
        harness.stop().await;
    });
}

/// Asks for capabilities and is refused.
async fn refused(harness: &Harness, capabilities: &Value) -> Box<kube::core::Status> {
    let patch = Patch::Merge(json!({ "spec": { "capabilities": capabilities } }));
    let api = harness.api(CLUSTER_VERSION);
    let parameters = PatchParams::default().dry_run();
    let refusal = || async {
        match api.patch("version", &parameters, &patch).await {
            Err(kube::Error::Api(status)) => Some(status),
            Err(_) | Ok(_) => None,
        }
    };
    // A server takes up a new configuration a moment later; that it cannot ask is another error.
    let is_answer =
        |it: &Option<Box<kube::core::Status>>| it.as_ref().is_some_and(|it| it.code == 400);
    until("the write is refused", refusal, is_answer).await.expect("a refusal")
}

#[test]
fn payloads_from_outside_imply_what_their_annotations_say() {
    let Some(first) = outside_payload("PLIMSOLL_PAYLOAD") else { return };
    let Some(next) = outside_payload("PLIMSOLL_PAYLOAD_NEXT") else { return };
    let enabled = |set: &str| {
        let set = first.capabilities.set(set).expect("a published set");
        set.capabilities.clone()
    };
    let check = |feature_set: &str, set: &str, expected: &[&str]| {
        let features = Features::of_set(feature_set);
        let context = |payload: &Payload| features.context(payload, DEFAULT_PROFILE);
        let found = implied_by_update(&first, &next, context, &enabled(set));
        let found: Vec<&str> = found.iter().map(|it| it.capability.as_str()).collect();
        assert_eq!(found, expected, "{feature_set} {set}");
    };
    check("Default", "v4.18", &[]);
    check("TechPreviewNoUpgrade", "v4.18", &["ClusterAPI", "CompatibilityRequirements"]);
    check("TechPreviewNoUpgrade", "vCurrent", &[]);
    // One manifest gained a capability beside them that it had lacked.
    check(
        "TechPreviewNoUpgrade",
        "None",
        &["CloudCredential", "ClusterAPI", "CompatibilityRequirements"],
    );
}

/// Definitions for previews that a kube-apiserver refuses, and what needs them: two have a rule that
/// it finds too costly to evaluate, and two drop a version that it had stored.
const REFUSED: [(&str, &str, &str); 6] = [
    (DEFINITION.group, DEFINITION.kind, "infrastructures.config.openshift.io"),
    (DEFINITION.group, DEFINITION.kind, "controllerconfigs.machineconfiguration.openshift.io"),
    (DEFINITION.group, DEFINITION.kind, "criocredentialproviderconfigs.config.openshift.io"),
    (DEFINITION.group, DEFINITION.kind, "osimagestreams.machineconfiguration.openshift.io"),
    ("config.openshift.io", "Infrastructure", "cluster"),
    ("config.openshift.io", "CRIOCredentialProviderConfig", "cluster"),
];

#[test]
fn outside_payloads_imply_two_capabilities_under_tech_preview() {
    let Some(first) = outside_payload("PLIMSOLL_PAYLOAD") else { return };
    let Some(next) = outside_payload("PLIMSOLL_PAYLOAD_NEXT") else { return };
    on_any_cluster(|kind| {
        let (first, next) = (Arc::clone(&first), Arc::clone(&next));
        async move {
            let payloads = [Arc::clone(&first), Arc::clone(&next)];
            let feature_set = "TechPreviewNoUpgrade";
            let mut harness =
                Harness::start_with(kind, &payloads, OperatorSetup::default(), feature_set).await;
            create_with_overrides(&harness, &asking("v4.18", &[]), &REFUSED).await;
            harness.control();
            harness.completed(&first.release.version).await;
            harness.release(&next);
            let expected = ["ClusterAPI", "CompatibilityRequirements"];
            let status = harness
                .cluster_version_until(|status| {
                    expected.iter().all(|it| enabled(status).contains(it))
                })
                .await;
            let implicit = condition(&status, "ImplicitlyEnabledCapabilities");
            assert_eq!(
                implicit["message"],
                "The following capabilities could not be disabled: \
                 ClusterAPI, CompatibilityRequirements",
            );
            let implied = harness.progress().await["capabilities"]["implied"].clone();
            let names = |field: &str| -> Vec<Value> {
                implied.as_array().into_iter().flatten().map(|it| it[field].clone()).collect()
            };
            assert_eq!(names("capability"), expected);
            assert_eq!(
                names("file"),
                [
                    "0000_30_cluster-api-operator_00_namespace.yaml",
                    "0000_20_crd-compatibility-checker_00_namespace.yaml",
                ],
            );
            harness.completed(&next.release.version).await;
            harness.stop().await;
        }
    });
}

impl Harness {
    /// The events of `events.k8s.io` that are about cluster-scoped objects.
    async fn events(&self) -> Vec<Value> {
        let gvk = GroupVersionKind::gvk("events.k8s.io", "v1", "Event");
        let resource = ApiResource::from_gvk_with_plural(&gvk, "events");
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), "default", &resource);
        let list = api.list(&ListParams::default()).await.expect("a list");
        list.items.into_iter().map(|it| serde_json::to_value(it).expect("it is JSON")).collect()
    }
}
