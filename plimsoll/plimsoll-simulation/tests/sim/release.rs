//! The small releases that a simulation installs and updates between.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use plimsoll_content::Payload;
use plimsoll_content::inclusion::DEFAULT_PROFILE;
use plimsoll_content::payload::{Directory, SourceFile, TemplateContext, parse};
use plimsoll_source::store::{PayloadSet, Signature};

/// The versions of the releases, oldest first.
pub(crate) const VERSIONS: [&str; 3] = ["1.0.0", "1.1.0", "1.1.1"];
/// What the objects of the release that cannot be loaded would be written by.
pub(crate) const BROKEN: &str = "1.1.2";
/// The run levels, each with an operator of the same name.
pub(crate) const LEVELS: [(u32, &str); 3] = [(10, "keel"), (20, "hull"), (30, "mast")];
/// The annotation that tells which release wrote an object.
pub(crate) const WRITTEN_BY: &str = "simulation.example/release";
/// How many objects another client may change: of every run level the settings and the Deployment.
pub(crate) const DRIFTING: usize = 2 * LEVELS.len();
/// The capability that may be requested.
pub(crate) const OPTIONAL: &str = "Console";
/// The capability that the second release puts an object in that every cluster has.
pub(crate) const IMPLIED: &str = "Build";

/// A manifest of a release, as the invariants know it.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) level: u32,
    /// Where the API has it.
    pub(crate) path: String,
    pub(crate) capability: Option<&'static str>,
    pub(crate) is_deletion: bool,
    file: String,
    text: String,
}

/// A release.
pub(crate) struct Release {
    pub(crate) version: &'static str,
    pub(crate) items: Vec<Item>,
    pub(crate) payload: Arc<Payload>,
    files: Vec<SourceFile>,
}

/// All releases, oldest first.
pub(crate) fn releases() -> &'static [Release] {
    static RELEASES: LazyLock<Vec<Release>> =
        LazyLock::new(|| (0..VERSIONS.len()).map(release).collect());
    &RELEASES
}

/// The path of the object of a number below [`DRIFTING`].
pub(crate) fn drifting(number: usize) -> &'static str {
    let is_drifting =
        |item: &&Item| item.path.ends_with("/settings") || item.path.contains("/deployments/");
    let mut items = releases()[0].items.iter().filter(is_drifting);
    items.nth(number).map(|item| item.path.as_str()).expect("there are as many")
}

/// A store with all of them, and one that cannot be loaded.
pub(crate) fn store(releases: &[Release]) -> PayloadSet {
    let store = PayloadSet::new();
    let add = |files: Vec<SourceFile>, version: &str| {
        let added = store.add(files, Some(&image(version)), Signature::NotSigned);
        added.expect("the files say which release they are");
    };
    for release in releases {
        add(release.files.clone(), release.version);
    }
    let mut files = files_of(&items(releases.len(), BROKEN), BROKEN);
    files.push(SourceFile {
        directory: Directory::ReleaseManifests,
        name: "0000_10_keel_99_broken.yaml".to_owned(),
        bytes: b"kind: [".as_slice().into(),
    });
    add(files, BROKEN);
    store
}

/// The pull specification of a version.
pub(crate) fn image(version: &str) -> String {
    format!("registry.example/release:{version}")
}

fn release(index: usize) -> Release {
    let version = VERSIONS[index];
    let items = items(index, version);
    let files = files_of(&items, version);
    let context = TemplateContext {
        release_image: image(version),
        cluster_profile: DEFAULT_PROFILE.to_owned(),
    };
    let payload = Arc::new(parse(&files, &context).expect("the release is in order"));
    Release { version, items, payload, files }
}

fn items(index: usize, version: &str) -> Vec<Item> {
    let mut items = Vec::new();
    for (level, name) in LEVELS {
        items.push(item(version, level, name, 0, Kind::Namespace, name));
        items.push(item(version, level, name, 1, Kind::Config, "settings"));
        items.push(item(version, level, name, 5, Kind::Deployment, name));
        items.push(item(version, level, name, 9, Kind::Operator, name));
    }
    let (level, name) = LEVELS[1];
    let console = item(version, level, name, 2, Kind::Config, "optional");
    items.push(Item { capability: Some(OPTIONAL), ..console }.annotated());
    let mut implied = item(version, level, name, 3, Kind::Config, "implied");
    if index > 0 {
        implied = Item { capability: Some(IMPLIED), ..implied }.annotated();
    }
    items.push(implied);
    let mut doomed = item(version, level, name, 4, Kind::Config, "doomed");
    if index > 0 {
        doomed = Item { is_deletion: true, ..doomed }.annotated();
    }
    items.push(doomed);
    if index == 0 {
        items.push(item(version, level, name, 6, Kind::Config, "vanished"));
    }
    items
}

fn files_of(items: &[Item], version: &str) -> Vec<SourceFile> {
    let mut files: Vec<SourceFile> = items
        .iter()
        .map(|item| SourceFile {
            directory: Directory::ReleaseManifests,
            name: item.file.clone(),
            bytes: item.text.clone().into(),
        })
        .collect();
    // What no release changes: an update finds it done.
    files.extend(LEVELS.iter().map(|(level, name)| SourceFile {
        directory: Directory::ReleaseManifests,
        name: format!("0000_{level:02}_{name}_02_constant.yaml"),
        bytes: constant(name).into(),
    }));
    let before: Vec<&str> = VERSIONS.into_iter().filter(|before| *before < version).collect();
    files.push(special(
        "release-metadata",
        &format!(
            r#"{{"kind":"cincinnati-metadata-v0","version":"{version}","previous":{before:?}}}"#
        ),
    ));
    files.push(special(
        "image-references",
        &format!(
            r#"{{"apiVersion":"image.openshift.io/v1","kind":"ImageStream","metadata":{{"name":"{version}"}},"spec":{{"tags":[]}}}}"#
        ),
    ));
    files
}

fn constant(namespace: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: constant\n  namespace: {namespace}\n  \
         annotations:\n    include.release.openshift.io/self-managed-high-availability: \"true\"\n"
    )
}

fn special(name: &str, text: &str) -> SourceFile {
    SourceFile {
        directory: Directory::ReleaseManifests,
        name: name.to_owned(),
        bytes: text.to_owned().into(),
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Namespace,
    Config,
    Deployment,
    Operator,
}

impl Item {
    /// The same with the annotations that its fields ask for.
    fn annotated(mut self) -> Self {
        let mut more = String::from("  annotations:\n");
        if let Some(capability) = self.capability {
            let _ = writeln!(more, "    capability.openshift.io/name: {capability}");
        }
        if self.is_deletion {
            more.push_str("    release.openshift.io/delete: \"true\"\n");
        }
        self.text = self.text.replacen("  annotations:\n", &more, 1);
        self
    }
}

fn item(version: &str, level: u32, component: &str, number: u32, kind: Kind, name: &str) -> Item {
    let (api, kind_name, path, rest) = match kind {
        Kind::Namespace => ("v1", "Namespace", format!("/api/v1/namespaces/{name}"), String::new()),
        Kind::Config => (
            "v1",
            "ConfigMap",
            format!("/api/v1/namespaces/{component}/configmaps/{name}"),
            format!("data:\n  version: \"{version}\"\n"),
        ),
        Kind::Deployment => (
            "apps/v1",
            "Deployment",
            format!("/apis/apps/v1/namespaces/{component}/deployments/{name}"),
            format!(
                "spec:\n  selector:\n    matchLabels:\n      app: {name}\n  template:\n    \
                 metadata:\n      labels:\n        app: {name}\n    spec:\n      containers:\n      \
                 - name: {name}\n        image: registry.example/{name}:{version}\n"
            ),
        ),
        Kind::Operator => (
            "config.openshift.io/v1",
            "ClusterOperator",
            format!("/apis/config.openshift.io/v1/clusteroperators/{name}"),
            format!(
                "spec: {{}}\nstatus:\n  versions:\n  - name: operator\n    version: \"{version}\"\n  \
                 relatedObjects:\n  - group: \"\"\n    resource: namespaces\n    name: {component}\n  \
                 - group: apps\n    resource: deployments\n    namespace: {component}\n    name: {name}\n"
            ),
        ),
    };
    let namespace = match kind {
        Kind::Namespace | Kind::Operator => String::new(),
        Kind::Config | Kind::Deployment => format!("  namespace: {component}\n"),
    };
    let text = format!(
        "apiVersion: {api}\nkind: {kind_name}\nmetadata:\n  name: {name}\n{namespace}  \
         annotations:\n    include.release.openshift.io/self-managed-high-availability: \"true\"\n    \
         {WRITTEN_BY}: \"{version}\"\n{rest}"
    );
    let file = format!("0000_{level:02}_{component}_{number:02}_{name}.yaml");
    Item { level, path, capability: None, is_deletion: false, file, text }
}
