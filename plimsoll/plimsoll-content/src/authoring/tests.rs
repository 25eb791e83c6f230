//! Sources, and the payloads that are made of them.
//!
//! A source is one text: `//- PATH` begins a file. Files below the folder of a component are its
//! manifests.

use super::{
    BuiltRelease, RELEASE_FILE, ReleaseSource, RenderedComponent, RenderedFile, SourceProblems,
    assemble,
};
use crate::capability::is_declaration;
use crate::inclusion::{Decision, decide};
use crate::lint::lint;
use crate::payload::{TemplateContext, parse};

fn files(text: &str) -> Vec<RenderedFile> {
    let mut files: Vec<RenderedFile> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("//- "), files.last_mut()) {
            (Some(path), _) => files.push(RenderedFile {
                path: path.to_owned(),
                text: String::new(),
                is_rendered: false,
            }),
            (None, Some(file)) => file.text.extend([line, "\n"]),
            (None, None) => panic!("a text begins with the name of a file"),
        }
    }
    files
}

fn build(text: &str) -> Result<BuiltRelease, SourceProblems> {
    let files = files(text);
    let release = files.iter().find(|file| file.path == RELEASE_FILE).expect("a release.yaml");
    let source = ReleaseSource::read(&release.text, None)?;
    let folder = |name: &str| {
        let prefix = format!("{name}/");
        let inside = files.iter().filter(|file| file.path.starts_with(&prefix));
        RenderedComponent { files: inside.cloned().collect(), program: None }
    };
    let rendered: Vec<_> = source.components.iter().map(|it| folder(&it.name)).collect();
    assemble(&source, &rendered)
}

/// The problems of a source, one a line.
fn check_problems(text: &str, expected: &str) {
    let problems = build(text).expect_err(text).to_string();
    let (_, problems) = problems.split_once("\n  ").expect("there is one");
    assert_eq!(problems.replace("\n  ", "\n"), expected, "{text}");
}

/// The names of the files with manifests, in their order, each with where it comes from.
fn names(built: &BuiltRelease) -> String {
    let manifests = built.files.iter().filter(|file| file.holds_manifests());
    let line = |name: &String| match built.origins.get(name) {
        Some(origin) => format!("{name} < {}:{}\n", origin.path, origin.line.unwrap_or_default()),
        None => format!("{name}\n"),
    };
    manifests.map(|file| line(&file.name)).collect()
}

fn text(built: &BuiltRelease, name: &str) -> String {
    let file = built.files.iter().find(|file| file.name.contains(name)).expect(name);
    String::from_utf8(file.bytes.to_vec()).expect("UTF-8")
}

const RELEASE: &str = "//- release.yaml\nname: pier\nversion: 1.2.0\ncomponents:\n- name: lamp\n";

#[test]
fn the_order_of_a_component_is_that_of_what_its_objects_need() {
    let source = format!(
        "{RELEASE}  namespace: harbour\n- name: crane\n  namespace: harbour\n  runLevel: 10\n//- lamp/all.yaml\n{}",
        [
            ("apps/v1", "Deployment", "lamp"),
            ("batch/v1", "Job", "check"),
            ("example.org/v1", "Flame", "small"),
            ("other.org/v1", "Oil", "barrel"),
            ("v1", "ConfigMap", "lamp"),
            ("policy/v1", "PodDisruptionBudget", "lamp"),
            ("networking.k8s.io/v1", "NetworkPolicy", "lamp"),
            ("storage.k8s.io/v1", "StorageClass", "lamp"),
            ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "lamp"),
            ("v1", "Service", "lamp"),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", "system:lamp"),
            ("v1", "ServiceAccount", "lamp"),
        ]
        .map(|(version, kind, name)| format!(
            "apiVersion: {version}\nkind: {kind}\nmetadata: {{name: '{name}'}}\n---\n"
        ))
        .concat()
    ) + "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: flames.example.org}\n\
         spec: {group: example.org, scope: Cluster, names: {kind: Flame, plural: flames}, versions: [{name: v1, served: true, storage: true}]}\n\
         //- crane/b.yaml\napiVersion: example.org/v1\nkind: Flame\nmetadata: {name: large}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rope, namespace: other}\n---\n\
         apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rope, namespace: harbour}\n";
    let built = build(&source).expect("a release");
    let expected = "\
0000_00_pier_00_capabilities.releasecapabilities.yaml
0000_10_crane_30_rope.configmap.yaml < crane/b.yaml:9
0000_10_crane_30_rope.configmap_2.yaml < crane/b.yaml:5
0000_10_crane_35_large.flame.yaml < crane/b.yaml:1
0000_10_lamp_00_harbour.namespace.yaml
0000_10_lamp_10_flames.example.org.customresourcedefinition.yaml < lamp/all.yaml:49
0000_10_lamp_20_lamp.serviceaccount.yaml < lamp/all.yaml:45
0000_10_lamp_20_system-lamp.clusterrole.yaml < lamp/all.yaml:41
0000_10_lamp_30_lamp.configmap.yaml < lamp/all.yaml:17
0000_10_lamp_30_lamp.networkpolicy.yaml < lamp/all.yaml:25
0000_10_lamp_30_lamp.storageclass.yaml < lamp/all.yaml:29
0000_10_lamp_35_barrel.oil.yaml < lamp/all.yaml:13
0000_10_lamp_50_lamp.service.yaml < lamp/all.yaml:37
0000_10_lamp_60_lamp.deployment.yaml < lamp/all.yaml:1
0000_10_lamp_65_check.job.yaml < lamp/all.yaml:5
0000_10_lamp_70_lamp.poddisruptionbudget.yaml < lamp/all.yaml:21
0000_10_lamp_75_lamp.validatingwebhookconfiguration.yaml < lamp/all.yaml:33
0000_10_lamp_80_small.flame.yaml < lamp/all.yaml:9
";
    assert_eq!(names(&built), expected);
    assert_eq!(
        built.notes,
        ["component lamp: namespace harbour is added, since no manifest creates it"]
    );
    // Only kinds that live in namespaces are given one.
    assert!(text(&built, "60_lamp.deployment").contains("  namespace: harbour\n"));
    assert!(!text(&built, "80_small.flame").contains("namespace"));
    assert!(!text(&built, "35_barrel.oil").contains("namespace"));
}

#[test]
fn manifests_get_what_the_payload_demands_and_keep_what_they_say() {
    let source = "//- release.yaml\nname: pier\nversion: 1.2.0\nprevious: [1.1.0]\nchannels: [fast, stable]\n\
        url: https://example.org\ncapabilities:\n- {name: Lights, description: Lamps}\n- {name: Fog, requires: [Lights], optIn: true}\n\
        images:\n- {name: lamp, from: example.org/lamp, image: 'r.org/lamp@sha256:01'}\n\
        components:\n- {name: lamp, capability: Lights, gate: {clusterOperator: lights}}\n\
        //- lamp/a.yaml\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: lamp\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: oil\n  annotations:\n    include.release.openshift.io/edge: 'true'\n    capability.openshift.io/name: Fog\n\
        ---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: lamp, namespace: lamp}\n\
        spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: lamp, image: 'example.org/lamp:1'}]}}}\n";
    let built = build(source).expect("a release");
    assert_eq!(
        text(&built, "oil.clusterrole"),
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  annotations:\n    capability.openshift.io/name: Fog\n    \
         include.release.openshift.io/edge: \"true\"\n  name: oil\n"
    );
    let deployment = text(&built, "lamp.deployment");
    for line in
        ["    capability.openshift.io/name: Lights\n", "      - image: r.org/lamp@sha256:01\n"]
    {
        assert!(deployment.contains(line), "{line}\n{deployment}");
    }
    assert!(!deployment.contains("include.release.openshift.io"), "{deployment}");
    assert_eq!(
        text(&built, "capabilities"),
        "apiVersion: plimsoll.io/v1alpha1\nkind: ReleaseCapabilities\nmetadata:\n  name: pier\nspec:\n  capabilities:\n  \
         - description: Lamps\n    name: Lights\n  - name: Fog\n    requires:\n    - Lights\n  omitBuiltIn: true\n  sets:\n  \
         - capabilities:\n    - Lights\n    name: vCurrent\n"
    );
    let payload = parse(&built.files, &TemplateContext::default()).expect("a payload");
    let release = &payload.release;
    assert_eq!((release.version.as_str(), release.url.as_str()), ("1.2.0", "https://example.org"));
    assert_eq!(
        (&release.previous[..], &release.channels[..]),
        (&["1.1.0".to_owned()][..], &["fast".to_owned(), "stable".to_owned()][..])
    );
    assert_eq!(release.images["lamp"], "r.org/lamp@sha256:01");
    let gate = text(&built, "99_lights.clusteroperator");
    assert!(
        gate.contains("    resource: deployments\n") && gate.contains("version: 1.2.0"),
        "{gate}"
    );
    let findings = lint(&built.files, &TemplateContext::default());
    assert!(findings.is_empty(), "{findings:#?}");
}

#[test]
fn manifests_are_for_any_profile_unless_the_source_has_profiles() {
    let build_with = |profiles: &str| {
        let source = format!(
            "{RELEASE}  namespace: harbour\n{profiles}//- lamp/a.yaml\napiVersion: v1\nkind: Secret\n\
             metadata: {{name: a}}\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: b\n  \
             annotations: {{helm.sh/hook: pre-install}}\n"
        );
        build(&source).expect("a release")
    };
    let built = build_with("");
    assert!(text(&built, "release-metadata").contains("\"plimsoll.io/profiles\": \"any\""));
    for name in ["a.secret", "b.serviceaccount", "harbour.namespace"] {
        assert!(!text(&built, name).contains("annotations"), "{}", text(&built, name));
    }
    assert_eq!(lint(&built.files, &TemplateContext::default()), []);
    let payload = parse(&built.files, &TemplateContext::default()).expect("a payload");
    let context = payload.context("edge", "");
    let mut applied = payload.manifests.iter().filter(|it| !is_declaration(it));
    assert!(applied.all(|it| decide(it, &context) == Decision::Included));
    let built = build_with("profiles: [edge, central]\n");
    assert!(!text(&built, "release-metadata").contains("plimsoll.io/profiles"));
    assert_eq!(
        text(&built, "a.secret"),
        "apiVersion: v1\nkind: Secret\nmetadata:\n  annotations:\n    \
         include.release.openshift.io/central: \"true\"\n    \
         include.release.openshift.io/edge: \"true\"\n  name: a\n  namespace: harbour\n"
    );
}

#[test]
fn a_namespace_belongs_to_the_capability_of_all_that_share_it() {
    let check = |second: &str, belongs: bool| {
        let source = format!(
            "//- release.yaml\nname: pier\nversion: 1.2.0\ncapabilities: [{{name: Lights}}]\ncomponents:\n\
             - {{name: lamp, namespace: harbour, capability: Lights}}\n\
             - {{name: crane, namespace: harbour{second}}}\n\
             //- lamp/a.yaml\napiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\n\
             //- crane/a.yaml\napiVersion: v1\nkind: Secret\nmetadata: {{name: b}}\n"
        );
        let built = build(&source).expect("a release");
        let namespace = text(&built, "harbour.namespace");
        assert_eq!(namespace.contains("capability.openshift.io/name: Lights"), belongs, "{second}");
        assert_eq!(lint(&built.files, &TemplateContext::default()), []);
    };
    check(", capability: Lights", true);
    check("", false);
    let source = format!(
        "{RELEASE}  namespace: harbour\n//- lamp/a.yaml\nkind: Node\napiVersion: v1\nmetadata: {{name: a}}\n"
    );
    let built = build(&source).expect("a release");
    assert!(!names(&built).contains("namespace"), "no object needs it");
}

#[test]
fn lists_are_taken_apart() {
    let source = format!(
        "{RELEASE}  namespace: harbour\n//- lamp/a.json\n{}\n//- lamp/b.yaml\n{}",
        r#"{"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}}]}"#,
        "apiVersion: v1\nkind: List\nitems: []\n",
    );
    let built = build(&source).expect("a release");
    assert_eq!(
        names(&built),
        "0000_00_pier_00_capabilities.releasecapabilities.yaml\n\
         0000_10_lamp_00_harbour.namespace.yaml\n\
         0000_10_lamp_30_a.configmap.yaml < lamp/a.json:1\n\
         0000_10_lamp_30_b.configmap.yaml < lamp/a.json:1\n\
         0000_10_lamp_30_c.secret.yaml < lamp/a.json:1\n"
    );
    assert!(text(&built, "a.configmap").starts_with("apiVersion: v1\nkind: ConfigMap\n"));
}

const JOB_SPEC: &str =
    "spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}\n";

#[test]
fn hooks_become_jobs_at_their_place() {
    let hook = |kind: &str, name: &str, hook: &str, weight: i32| {
        let (version, spec) = match kind {
            "Job" => ("batch/v1", JOB_SPEC),
            _ => ("v1", ""),
        };
        format!(
            "apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {name}\n  annotations:\n    helm.sh/hook: {hook}\n    \
             helm.sh/hook-weight: '{weight}'\n    helm.sh/hook-delete-policy: before-hook-creation\n{spec}---\n"
        )
    };
    let source = [
        format!(
            "{RELEASE}  namespace: harbour\n  omitHooks: [sweep]\nprevious: [1.1.0]\n//- lamp/a.yaml\n"
        ),
        hook("Job", "late", "pre-install,pre-upgrade", 5),
        hook("Job", "early", "pre-install", -5),
        hook("Job", "last", "post-install,post-upgrade", 0),
        hook("ServiceAccount", "early", "pre-install", -10),
        hook("Pod", "probe", "test", 0),
        hook("Job", "sweep", "post-delete", 0),
    ];
    let built = build(&source.concat()).expect("a release");
    let names: Vec<&str> = built.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(
        names[2..8],
        [
            "0000_10_lamp_20_early.serviceaccount.yaml",
            "0000_10_lamp_40_early.job.yaml",
            "0000_10_lamp_41_late-1-1-0.job.yaml",
            "0000_10_lamp_41_late-1-2-0.job.yaml",
            "0000_10_lamp_90_last-1-1-0.job.yaml",
            "0000_10_lamp_90_last-1-2-0.job.yaml",
        ]
    );
    assert_eq!(
        text(&built, "late-1-1-0.job"),
        "apiVersion: batch/v1\nkind: Job\nmetadata:\n  annotations:\n    \
         release.openshift.io/delete: \"true\"\n  name: late-1-1-0\n  namespace: harbour\n"
    );
    assert!(lint(&built.files, &TemplateContext::default()).is_empty());
    assert!(text(&built, "early.job").contains("release.openshift.io/create-only: \"true\""));
    assert!(built.files.iter().all(|file| !file.bytes.windows(7).any(|it| it == b"helm.sh")));
    assert_eq!(
        built.notes[..2],
        [
            "component lamp: test Pod \"probe\" is left out",
            "component lamp: hook Job \"sweep\" is left out"
        ]
    );
    let edge =
        "include.release.openshift.io/edge: 'true'\n    helm.sh/hook: pre-install,pre-upgrade";
    let source_of_edge = source.concat().replace("helm.sh/hook: pre-install,pre-upgrade", edge);
    let built = build(&source_of_edge).expect("a release");
    let deletion = text(&built, "late-1-1-0.job");
    assert!(deletion.contains("release.openshift.io/edge") && !deletion.contains("self-managed"));
    check_problems(
        &source.concat().replace("[sweep]", "[sweeep]"),
        "lamp/a.yaml:49: Job \"sweep\" is a Helm hook that cannot be converted: a release has no post-delete hooks; leave it out with omitHooks: [sweep] of component lamp\n\
         release.yaml:4: omitHooks: there is no hook \"sweeep\", did you mean \"sweep\"?",
    );
}

#[test]
fn what_is_wrong_in_a_release_file_is_reported_with_its_line() {
    check_problems(
        "//- release.yaml\n",
        "release.yaml: the file is empty; it needs name, version and components",
    );
    check_problems(
        "//- release.yaml\nname: [\n",
        "release.yaml:1: invalid YAML: unclosed bracket '[', column 7",
    );
    check_problems(
        "//- release.yaml\n- a\n",
        "release.yaml:1: must be a mapping with name, version, previous, channels, url, profiles, capabilities, images, kubeVersion, components",
    );
    check_problems(
        "//- release.yaml\na: 1\n---\nb: 1\n",
        "release.yaml:3: a second document begins here, one is expected",
    );
    check_problems(
        "//- release.yaml\na: 1\na: 2\n",
        "release.yaml:2: key \"a\" occurs twice, the last one counts",
    );
    check_problems(
        "//- release.yaml\n{}\n",
        "release.yaml:1: version is missing: write a version such as 1.0.0\n\
         release.yaml:1: name is missing: lower-case letters, digits and `-`\n\
         release.yaml:1: components is missing: name the folders of the release, in their order",
    );
    check_problems(
        "//- release.yaml\nname: Pier\nversion: 1.0\nprevius: [1.0.0]\nprevious: [1]\nchannels: fast\ncolour: blue\n\
         capabilities:\n- {name: Lights, optIn: sometimes}\nimages:\n- {name: a}\ncomponents:\n\
         - name: lamp\n  runLevl: 5\n- runLevel: -1\n- name: lamp\n  capability: Light\n  values: ../a\n  gate: {}\n",
        "release.yaml:1: name: \"Pier\" is not a name: use lower-case letters and digits in groups joined by single hyphens, 53 at most\n\
         release.yaml:2: version: must be text: put it in quotes\n\
         release.yaml:3: previus: unknown field, did you mean \"previous\"?\n\
         release.yaml:4: previous[0]: must be text: put it in quotes\n\
         release.yaml:5: channels: must be a list\n\
         release.yaml:6: colour: unknown field; there are name, version, previous, channels, url, profiles, capabilities, images, kubeVersion, components\n\
         release.yaml:8: capabilities[0].optIn: must be true or false\n\
         release.yaml:10: images[0]: image is missing: its pull specification\n\
         release.yaml:13: components[0].runLevl: unknown field, did you mean \"runLevel\"?\n\
         release.yaml:14: components[1]: name is missing: lower-case letters, digits and `-`\n\
         release.yaml:14: components[1].runLevel: must be a number from 0 to 999\n\
         release.yaml:15: components[2].name: component \"lamp\" is there already\n\
         release.yaml:16: components[2].capability: there is no capability \"Light\", did you mean \"Lights\"?\n\
         release.yaml:17: components[2].values: must be a mapping of values, or the path of a file in the source\n\
         release.yaml:18: components[2].gate: clusterOperator is missing: the name of the ClusterOperator to wait for",
    );
    check_problems(
        &format!("{RELEASE}previous: ['1.2', one, 1.2.0]\n"),
        "release.yaml:5: previous[0]: \"1.2\" is not a semantic version: unexpected end of input while parsing minor version number\n\
         release.yaml:5: previous[1]: \"one\" is not a semantic version: unexpected character 'o' while parsing major version number\n\
         release.yaml:5: previous[2]: 1.2.0 is the version of the release itself",
    );
    check_problems(
        &format!("{RELEASE}  capability: Lights\n"),
        "release.yaml:5: components[0].capability: there is no capability \"Lights\": declare it in capabilities",
    );
}

#[test]
fn values_that_cannot_work_are_reported_with_their_lines() {
    check_problems(
        &format!("{RELEASE}previous: [1.3.0, 1.1.0]\nkubeVersion: latest\n"),
        "release.yaml:5: previous[0]: 1.3.0 is newer than the release, 1.2.0: name earlier versions only\n\
         release.yaml:6: kubeVersion: \"latest\" is not a version of Kubernetes: write one such as 1.34.0",
    );
    check_problems(
        &format!(
            "{RELEASE}images:\n- {{name: a, from: b, image: c}}\n- {{name: a, from: b, image: '???'}}\n"
        ),
        "release.yaml:7: images[1].image: \"???\" is not a reference to an image: write REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@DIGEST\n\
         release.yaml:7: images[1].name: image \"a\" is there already: give it another name\n\
         release.yaml:7: images[1].from: image \"a\" takes the place of b already",
    );
    check_problems(
        "//- release.yaml\nname: pier\nversion: 1.2.0\ncomponents: []\n",
        "release.yaml:3: components: there are none: name the folders of the release, in their order",
    );
    check_problems(
        &format!(
            "{RELEASE}previous: [1.0.0, 1.1.0, 1.0.0]\nchannels: [stable, '', ' fast', Fast, stable-1.2, stable]\n\
             profiles: [edge, central, edge]\n"
        ),
        "release.yaml:5: previous[2]: version \"1.0.0\" is there already: remove one of the two\n\
         release.yaml:6: channels[1]: must not be empty\n\
         release.yaml:6: channels[2]: \" fast\" is not the name of a channel: use lower-case letters, digits, `-` and `.`, such as stable-1.2\n\
         release.yaml:6: channels[3]: \"Fast\" is not the name of a channel: use lower-case letters, digits, `-` and `.`, such as stable-1.2\n\
         release.yaml:6: channels[5]: channel \"stable\" is there already: remove one of the two\n\
         release.yaml:7: profiles[2]: profile \"edge\" is there already: remove one of the two",
    );
    let problems =
        build(&format!("{RELEASE}profiles: ['a b']\n")).expect_err("a blank").to_string();
    let expected = "release.yaml:5: profiles[0]: \"a b\" is not the name of a profile: API servers refuse its annotation: name part ";
    assert!(problems.contains(expected), "{problems}");
    for version in ["1.34", "v1.34.2", "1.34.0-rc.1"] {
        let text = format!(
            "name: pier\nversion: 1.2.0\nkubeVersion: '{version}'\ncomponents: [{{name: a}}]\n"
        );
        assert_eq!(
            ReleaseSource::read(&text, None).map(|it| it.kube_version),
            Ok(Some(version.to_owned()))
        );
    }
    let problems =
        build(&format!("{RELEASE}  namespace: Pier_1\n  gate: {{clusterOperator: A_b}}\n"));
    let problems = problems.expect_err("neither is a name").to_string();
    for part in [
        "release.yaml:5: components[0].namespace: \"Pier_1\" is refused by API servers: a lowercase RFC 1123 label",
        "release.yaml:6: components[0].gate.clusterOperator: \"A_b\" is refused by API servers: a lowercase RFC 1123 subdomain",
    ] {
        assert!(problems.contains(part), "{part}\n{problems}");
    }
}

#[test]
fn what_is_wrong_in_manifests_is_reported_with_its_line() {
    let check = |manifests: &str, expected: &str| {
        check_problems(&format!("{RELEASE}{manifests}"), expected);
    };
    check("", "release.yaml:4: component \"lamp\" has no manifests");
    check(
        "//- lamp/a.yaml\na: 1\n---\nkind: A\n---\n# b\nb: [\n---\n- c\n",
        "lamp/a.yaml:6: invalid YAML: unclosed bracket '[', column 4\n\
         lamp/a.yaml:1: the document has no kind\n\
         lamp/a.yaml:3: the A has no name: metadata.name must be a non-empty string\n\
         lamp/a.yaml:8: the document is a list, a manifest must be a mapping",
    );
    check(
        "//- lamp/a.yaml\nkind: A\nmetadata: {name: a, annotations: []}\na: 1\na: 2\n",
        "lamp/a.yaml:4: key \"a\" occurs twice, the last one counts\nlamp/a.yaml:1: metadata.annotations must be a mapping",
    );
    let profiled = |name: &str| {
        format!(
            "profiles: [edge, central]\n//- lamp/a.yaml\nkind: A\nmetadata: {{name: a, annotations: \
             {{include.release.openshift.io/{name}: 'true'}}}}\n"
        )
    };
    check(
        &profiled("centrel"),
        "lamp/a.yaml:1: annotation include.release.openshift.io/centrel: release.yaml lists no profile \"centrel\", did you mean \"central\"?; add it to profiles there, or correct the annotation",
    );
    // Manifests of other products are for other profiles as well.
    let besides = |name: &str| {
        let annotation = format!("{{include.release.openshift.io/{name}: 'true'");
        let both = format!("{annotation}, include.release.openshift.io/edge: 'true'");
        format!("{RELEASE}{}", profiled(name).replace(&annotation, &both))
    };
    assert!(build(&besides("managed")).is_ok());
    let problems = build(&besides("centrel")).expect_err("it is misspelled").to_string();
    assert!(problems.contains("did you mean \"central\"?"), "{problems}");
    check(
        "images:\n- {name: a, from: b, image: c}\n//- lamp/a.yaml\nkind: A\nmetadata: {name: a}\n",
        "release.yaml:6: image a: no manifest names b",
    );
    check(
        "  omitHooks: [a]\nimages:\n- {name: a, from: b, image: c}\n//- lamp/a.yaml\nkind: A\nmetadata: {name: a}\n",
        "release.yaml:4: omitHooks: there is no hook \"a\"",
    );
}
