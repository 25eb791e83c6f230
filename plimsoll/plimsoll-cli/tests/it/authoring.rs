//! Releases that are built from sources: the one that `release new` makes, and the example platform,
//! installed and updated on whole clusters; and the programs that render components.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use k8s_testkit::prerequisites::skip;
use plimsoll_content::Payload;
use plimsoll_source::authoring::build;
use serde_json::Value;

use crate::harness::{Harness, on_each_cluster, sample_payload};
use crate::install::assert_present;

fn plimsoll(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("the program runs")
}

/// The release of a source, in a version.
fn built(source: &Path, version: &str) -> Arc<Payload> {
    let release = build(source, Some(version)).expect("the source is in order");
    sample_payload(&release.files)
}

/// Installs a release and updates it to another one; every manifest of both was applied.
fn install_and_update(first: &Arc<Payload>, second: &Arc<Payload>) {
    on_each_cluster(|kind| async move {
        let payloads = [Arc::clone(first), Arc::clone(second)];
        let mut harness = Harness::installed(kind, &payloads).await;
        assert_present(&harness, first, &[]).await;
        harness.release(second);
        harness.completed(&second.release.version).await;
        assert_present(&harness, second, &[]).await;
        harness.stop().await;
    });
}

#[test]
fn a_new_release_lints_clean_and_is_installed_and_updated() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |arguments: &[&str]| {
        let Output { status, stdout, stderr } = plimsoll(directory.path(), arguments);
        let text = String::from_utf8_lossy(&stdout).into_owned();
        assert!(status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&stderr));
        text
    };
    run(&["release", "new", "harbour"]);
    run(&["release", "build", "harbour", "--output", "payload"]);
    assert_eq!(run(&["release", "lint", "payload"]), "0 errors, 0 warnings\n");
    assert_eq!(run(&["release", "lint", "harbour"]), "0 errors, 0 warnings\n");
    let source = directory.path().join("harbour");
    let first = built(&source, "0.1.0");
    let deployment = source.join("web/deployment.yaml");
    let text = fs::read_to_string(&deployment).expect("a file");
    fs::write(deployment, text.replace("replicas: 2", "replicas: 3")).expect("a file");
    // What the comments suggest works, too.
    let release = source.join("release.yaml");
    let text = fs::read_to_string(&release).expect("a file");
    let with_gate = text.replace("  # gate:", "  gate:").replace("  # runLevel:", "  runLevel:");
    assert_ne!(text, with_gate);
    fs::write(release, with_gate).expect("a file");
    let second = built(&source, "0.2.0");
    let gate = "0000_20_web_99_web.clusteroperator.yaml";
    assert!(second.manifests.iter().any(|manifest| *manifest.file == *gate));
    install_and_update(&first, &second);
}

#[test]
fn a_release_that_is_not_there_is_named_as_it_was_asked_for() {
    let directory = tempfile::tempdir().expect("a directory");
    let lint = ["release", "lint", "releases/missing", "-o", "sarif"];
    let Output { status, stdout, .. } = plimsoll(directory.path(), &lint);
    assert_eq!(status.code(), Some(1));
    let report: Value = serde_json::from_slice(&stdout).expect("JSON");
    let location = &report["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "releases/missing");
}

#[test]
fn a_source_is_planned_and_rehearsed_without_being_built() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |arguments: &[&str]| {
        let Output { status, stdout, stderr } = plimsoll(directory.path(), arguments);
        let text = [stdout, stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).concat();
        (status.code(), text)
    };
    let check = |arguments: &[&str], code: i32, expected: &str| {
        let (found, text) = run(arguments);
        assert_eq!(found, Some(code), "{arguments:?}: {text}");
        assert!(text.contains(expected), "{arguments:?}: {text}");
    };
    run(&["release", "new", "harbour"]);
    check(&["release", "plan", "--to", "harbour"], 0, "Installation of 0.1.0: 4 created");
    check(&["rehearse", "--install", "--to", "harbour"], 0, "It would succeed, ");
    // What lint refuses would not do what it is meant to do.
    let operator =
        "apiVersion: config.openshift.io/v1\nkind: ClusterOperator\nmetadata:\n  name: web\n";
    fs::write(directory.path().join("harbour/web/operator.yaml"), operator).expect("a file");
    let expected = "release 0.1.0 is not rehearsed; `plimsoll release lint` reports 1 error in it:\n\
        web/operator.yaml:1: error [operator-versions]: ";
    check(&["rehearse", "--install", "--to", "harbour"], 1, expected);
    // What the cluster does not include is none of its business.
    let elsewhere = "  annotations: {include.release.openshift.io/elsewhere: 'true'}\n";
    let operator_elsewhere = format!("{operator}{elsewhere}");
    fs::write(directory.path().join("harbour/web/operator.yaml"), operator_elsewhere)
        .expect("a file");
    let rehearse = ["rehearse", "--install", "--to", "harbour"];
    check(&rehearse, 0, "It would succeed, ");
    let expected = "Errors in what the cluster does not include\n  \
        web/operator.yaml:1: warning [operator-versions]: ";
    check(&rehearse, 0, expected);
    let operator_outside =
        format!("{operator}  annotations: {{release.openshift.io/feature-set: CustomNoUpgrade}}\n");
    fs::write(directory.path().join("harbour/web/operator.yaml"), operator_outside)
        .expect("a file");
    check(&rehearse, 0, "\"Default\" is required");
    let custom = ["rehearse", "--install", "--to", "harbour", "--feature-set", "CustomNoUpgrade"];
    check(&custom, 1, "release 0.1.0 is not rehearsed");
}

/// Whether there are the programs that the example platform needs; otherwise that is on record.
pub(crate) fn has_programs() -> bool {
    let runs = |name: &str| Command::new(name).arg("version").output().is_ok();
    let renders = runs("kustomize") || runs("kubectl");
    if !renders {
        skip("neither kustomize nor kubectl is in PATH");
    }
    if !runs("helm") {
        skip("helm is not in PATH");
    }
    renders && runs("helm")
}

#[test]
fn the_example_platform_is_installed_and_updated() {
    if !has_programs() {
        return;
    }
    let source = std::path::absolute("../../examples/platform").expect("a working directory");
    let (first, second) = (built(&source, "1.0.0"), built(&source, "1.1.0"));
    let jobs = |payload: &Payload| -> Vec<String> {
        let jobs = payload.manifests.iter().filter(|manifest| manifest.key.kind == "Job");
        jobs.map(|manifest| manifest.key.name.clone()).collect()
    };
    assert_eq!(jobs(&first), ["reports-migrate-1-0-0"]);
    assert_eq!(jobs(&second), ["reports-migrate-1-1-0"]);
    install_and_update(&first, &second);
}

/// A directory with a source of one component, and programs.
struct ProgramSource {
    directory: tempfile::TempDir,
}

impl ProgramSource {
    fn new(release: &str, files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let release = format!(
            "name: pier\nversion: 1.0.0\ncomponents:\n- name: lamp\n  namespace: harbour\n{release}"
        );
        for (name, text) in files.iter().chain(&[("release.yaml", release.as_str())]) {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().expect("it is in the directory"))
                .expect("a directory");
            fs::write(path, text).expect("a file");
        }
        fs::create_dir(directory.path().join("bin")).expect("a directory");
        fs::write(directory.path().join("rendered.yaml"), CONFIG).expect("a file");
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Adds a program by its shell script.
    fn program(self, name: &str, script: &str) -> Self {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
        self
    }

    /// Builds it with no programs but its own.
    fn run(&self) -> Output {
        Command::new(env!("CARGO_BIN_EXE_plimsoll"))
            .args(["release", "build", ".", "--output", "out"])
            .env_clear()
            .env("PATH", self.path("bin"))
            .current_dir(self.directory.path())
            .output()
            .expect("the program runs")
    }

    /// What the build says.
    fn build(&self) -> String {
        let output = self.run();
        String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8")
    }

    fn built(&self, name: &str) -> String {
        fs::read_to_string(self.path("out/release-manifests").join(name)).expect(name)
    }
}

const CHART: [(&str, &str); 1] = [("lamp/Chart.yaml", "name: lamp\n")];
const KUSTOMIZATION: [(&str, &str); 1] = [("lamp/kustomization.yaml", "")];
const CONFIG: &str =
    "---\n# Source: lamp/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";
/// What a failed build begins with.
const FAILED: &str =
    "error: failed to build `.`: the source has 1 problem\n  release.yaml:4: component \"lamp\" ";

#[test]
fn a_chart_is_rendered_with_the_values_and_the_namespace_of_its_component() {
    let script = r#"[ $1 = version ] && printf v3.9.9 && exit
        /bin/cat rendered.yaml
        echo "data:"
        name=$2; shift 3
        echo "  arguments: '$name $*'"
        while [ $# -gt 1 ]; do shift; done
        echo "  values: |"
        /bin/sed 's/^/    /' $1"#;
    let source = ProgramSource::new(
        "  values: {lamps: 2}\n  apiVersions: [a/v1, b/v1]\nkubeVersion: 1.37.0\n",
        &CHART,
    )
    .program("helm", script);
    let said = source.build();
    assert!(said.contains("3 manifests"), "{said}");
    let config = source.built("0000_10_lamp_30_a.configmap.yaml");
    assert!(
        config.contains(
            "  arguments: lamp --include-crds --namespace harbour --kube-version 1.37.0 \
             --api-versions a/v1 --api-versions b/v1 --values /"
        ),
        "{config}"
    );
    assert!(config.contains("  values: |\n    lamps: 2\n"), "{config}");
    assert!(
        source.built("release-metadata").contains("\"plimsoll.io/rendered-with\": \"helm v3.9.9\"")
    );
}

#[test]
fn a_program_ends_with_the_terminal() {
    let state = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = state.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    if mask.is_none_or(|mask| mask & 1 == 1) {
        skip("SIGHUP is ignored, or /proc does not say so");
        return;
    }
    let script = "[ $1 = version ] && printf v3.9.9 && exit
        echo $$ > process; kill -HUP $PPID; exec /bin/sleep 60";
    let source = ProgramSource::new("", &CHART).program("helm", script);
    assert_eq!(source.run().status.code(), Some(129));
    let process = fs::read_to_string(source.path("process")).expect("it has begun");
    let stat = format!("/proc/{}/stat", process.trim());
    // One that nothing waits for stays as a zombie.
    while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        std::thread::yield_now();
    }
}

#[test]
fn what_a_program_cannot_render_is_reported_with_its_component() {
    let helm = |script: &str| {
        let script = format!("[ $1 = version ] && printf v3.9.9 && exit\n{script}");
        ProgramSource::new("", &CHART).program("helm", &script).build()
    };
    let check = |said: String, expected: &str| {
        let said = said.trim_end();
        assert_eq!(said.strip_prefix(FAILED).unwrap_or(said), expected);
    };
    check(
        ProgramSource::new("", &CHART).build(),
        "is a Helm chart: install helm, which is not in PATH",
    );
    check(
        ProgramSource::new("", &KUSTOMIZATION).build(),
        "is a kustomization: install kustomize or kubectl, which is not in PATH",
    );
    check(
        helm("echo 'Error: no template' >&2; echo >&2; echo '  at line 3' >&2; exit 1"),
        "cannot be rendered: helm: Error: no template; at line 3",
    );
    check(helm("exit 4"), "cannot be rendered: helm: exit status: 4");
    check(
        helm("printf '# Source: lamp/templates/big.yaml\\n'; exec /bin/cat /dev/zero"),
        "cannot be rendered: helm prints more than 256 MiB (lamp/templates/big.yaml): look for what its \
         templates repeat",
    );
    check(
        helm("printf '# Source: lamp/templates/key.yaml\\nkey: '; echo $$"),
        "is rendered differently each time (lamp/templates/key.yaml), so its release could not be built \
         again: give the values that the chart generates in values",
    );
    check(
        ProgramSource::new("  values: more.yaml\n", &CHART).program("helm", "").build(),
        "cannot be rendered: the values `more.yaml` cannot be read: No such file or directory (os error 2)",
    );
    let said = helm("printf '# Source: lamp/templates/a.yaml\\nkind: A\\n'");
    assert!(
        said.trim_end().ends_with(
            "lamp/templates/a.yaml: the A has no name: metadata.name must be a non-empty string"
        ),
        "{said}"
    );
}

#[test]
fn a_kustomization_is_rendered_by_kustomize_or_kubectl() {
    let check = |name: &str, script: &str, version: &str| {
        let source = ProgramSource::new("", &KUSTOMIZATION).program(name, script);
        assert!(source.build().contains("3 manifests"), "{}", source.build());
        let metadata = source.built("release-metadata");
        assert!(metadata.contains(&format!("\"kustomize {version}\"")), "{metadata}");
    };
    let build = "/bin/cat rendered.yaml";
    let script = format!("case $1 in version) echo v5.0.0;; build) {build};; esac");
    check("kustomize", &script, "v5.0.0");
    let answer = r#"{"kustomizeVersion": "v5.5.0"}"#;
    let script = format!("case $1 in version) echo '{answer}';; kustomize) {build};; esac");
    check("kubectl", &script, "v5.5.0");
}
