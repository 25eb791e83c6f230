//! Texts about the capabilities of a release.

use clap::Parser;

use super::{CapabilityCommand, run};

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: CapabilityCommand,
}

const DECLARATION: &str = "apiVersion: plimsoll.io/v1alpha1
kind: ReleaseCapabilities
metadata: {name: capabilities}
spec:
  omitBuiltIn: true
  capabilities:
  - name: Lights
    description: Lamps along the pier
  - name: FogHorn
    description: Sounds while the lamps cannot be seen
    requires: [Lights]
  sets:
  - name: vCurrent
    capabilities: [Lights]
";

fn object(name: &str, capabilities: &str, profile: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: {name}\n  annotations:\n    include.release.openshift.io/{profile}: 'true'\n    capability.openshift.io/name: {capabilities}\n"
    )
}

/// Runs a command on a payload that declares capabilities; its output, or its error.
fn output(arguments: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let ours = "self-managed-high-availability";
    let objects = [
        object("lamps", "Lights", ours),
        object("horn", "FogHorn", ours),
        object("both", "FogHorn+Lights", ours),
        object("hosted", "FogHorn", "hosted"),
    ];
    let files = [
        ("manifests/0000_00_harbour_capabilities.yaml", DECLARATION.to_owned()),
        ("release-manifests/0000_10_pier_objects.yaml", objects.concat()),
        ("release-manifests/release-metadata", r#"{"kind":"cincinnati-metadata-v0","version":"1.0.0"}"#.to_owned()),
        ("release-manifests/image-references", r#"{"kind":"ImageStream","apiVersion":"image.openshift.io/v1","metadata":{"name":"1.0.0"}}"#.to_owned()),
    ];
    for (path, text) in files {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let arguments = arguments.replace("DIR", directory.path().to_str().unwrap());
    let command = match Arguments::try_parse_from(arguments.split(' ')) {
        Ok(arguments) => arguments.command,
        Err(error) => return error.to_string(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut out = Vec::new();
    match runtime.block_on(run(command, &mut out)) {
        Ok(_) => String::from_utf8(out).unwrap(),
        Err(error) => format!("error: {error:#}"),
    }
}

#[test]
fn the_capabilities_that_a_release_declares_are_listed() {
    assert_eq!(
        output("capability list --release DIR"),
        "NAME      DEFAULT   MANIFESTS   REQUIRES   DESCRIPTION\n\
         FogHorn   no        3           Lights     Sounds while the lamps cannot be seen\n\
         Lights    yes       2           -          Lamps along the pier\n",
    );
    let json: serde_json::Value =
        serde_json::from_str(&output("capability list --release DIR -o json")).unwrap();
    assert_eq!(json[0]["name"], "FogHorn");
    assert_eq!(json[0]["requires"], serde_json::json!(["Lights"]));
    assert_eq!(json[1]["sets"], serde_json::json!(["vCurrent"]));
    assert!(output("capability list --release DIR -o yaml").starts_with("- name: FogHorn\n"));
}

#[test]
fn what_enabling_a_capability_would_create_is_explained() {
    assert_eq!(
        output("capability explain FogHorn --release DIR"),
        "Name:           FogHorn\n\
         Description:    Sounds while the lamps cannot be seen\n\
         Enabled:        no\n\
         Requires:       Lights\n\
         Missing:        Lights\n\
         Declared in:    0000_00_harbour_capabilities.yaml\n\
         Release:        1.0.0\n\
         \n\
         Enabling it creates 1 object\n\
         \x20 KIND        NAME   FILE\n\
         \x20 Namespace   horn   0000_10_pier_objects.yaml\n\
         \n\
         1 object of it would still be excluded: other capabilities are needed, too\n\
         \x20 KIND        NAME   FILE                        NEEDS\n\
         \x20 Namespace   both   0000_10_pier_objects.yaml   Lights\n\
         \n\
         1 manifest of it is for other profiles, feature sets or feature gates\n\n",
    );
    let with = output("capability explain FogHorn --release DIR --baseline vCurrent");
    assert!(with.contains("Enabling it creates 2 objects"), "{with}");
    let enabled = output("capability explain Lights --release DIR --baseline vCurrent -o json");
    let json: serde_json::Value = serde_json::from_str(&enabled).unwrap();
    assert_eq!(json["enabled"], true);
    assert_eq!(json["objects"][0]["name"], "lamps");
}

#[test]
fn a_misspelt_name_is_guessed() {
    assert_eq!(
        output("capability explain foghorn --release DIR"),
        "error: there is no capability \"foghorn\", did you mean \"FogHorn\"? (see `plimsoll capability list`)",
    );
    assert_eq!(
        output("capability list --release DIR --baseline vcurrent"),
        "error: --baseline: there is no capability set \"vcurrent\", did you mean \"vCurrent\"?",
    );
}
