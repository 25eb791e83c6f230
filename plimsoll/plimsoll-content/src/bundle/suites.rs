//! What authors of bundles are told on request: recommendations, what a catalog demands of those who
//! publish in it, and APIs that Kubernetes does not serve any more.

mod good_practices;
mod objects;
mod operator_hub;
mod removed_apis;

use std::collections::BTreeSet;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use semver::Version;
use serde_json::Value;

use self::good_practices::good_practices;
use self::objects::objects;
use self::operator_hub::operator_hub;
use self::removed_apis::removed_apis;
use super::BundleFile;
use super::read::{BundleManifest, documents};
use crate::catalog::DefectCode;
use crate::diagnostic::Diagnostic;

/// Checks of bundles that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BundleSuite {
    /// Recommendations of the Operator SDK: requests for resources, names of channels and versions,
    /// descriptions, no permission to create definitions.
    GoodPractices,
    /// What OperatorHub.io demands: provider, maintainers, links, version, icon.
    OperatorHub,
    /// The capability level is one that there is.
    Capabilities,
    /// The categories are those of OperatorHub.io.
    Categories,
    /// Objects that can keep nodes from being drained, or that change the whole cluster.
    Objects,
    /// APIs that Kubernetes removed.
    RemovedApis,
}

impl BundleSuite {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::GoodPractices,
        Self::OperatorHub,
        Self::Capabilities,
        Self::Categories,
        Self::Objects,
        Self::RemovedApis,
    ];

    /// How it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GoodPractices => "good-practices",
            Self::OperatorHub => "operatorhub",
            Self::Capabilities => "capabilities",
            Self::Categories => "categories",
            Self::Objects => "objects",
            Self::RemovedApis => "removed-apis",
        }
    }
}

/// Size of a bundle, compressed, beyond which OLM v0 cannot unpack it, in bytes.
const SIZE_MAX: usize = 1 << 20;
/// Size from which on it is reported, in bytes.
const SIZE_NEAR: usize = SIZE_MAX / 100 * 85;

/// What the suites report of the files of a bundle directory; `kubernetes` is the version that it is
/// meant for, if not that of `spec.minKubeVersion`. Files that cannot be read are passed over: those are
/// reported by [`convert`](super::convert).
pub fn check_suites(
    files: &[BundleFile],
    suites: &BTreeSet<BundleSuite>,
    kubernetes: Option<&Version>,
) -> Vec<Diagnostic> {
    let in_directory = |directory: &str| {
        let files = files.iter().filter(|it| it.path.starts_with(directory));
        files.flat_map(|file| documents(file, &mut Vec::new())).collect::<Vec<_>>()
    };
    let (manifests, metadata) = (in_directory("manifests/"), in_directory("metadata/"));
    let mut defects = size(files);
    let Some(csv) = manifests.iter().find(|it| it.kind() == "ClusterServiceVersion") else {
        return defects;
    };
    for suite in suites {
        match suite {
            BundleSuite::GoodPractices => good_practices(csv, &metadata, &mut defects),
            BundleSuite::OperatorHub => operator_hub(csv, &mut defects),
            BundleSuite::Capabilities => {
                known_texts(csv, "capabilities", &CAPABILITIES, None, &mut defects);
            }
            BundleSuite::Categories => {
                known_texts(csv, "categories", &CATEGORIES, Some(','), &mut defects);
            }
            BundleSuite::Objects => objects(&manifests, &mut defects),
            BundleSuite::RemovedApis => removed_apis(csv, &manifests, kubernetes, &mut defects),
        }
    }
    defects.sort();
    defects
}

/// Upstream: github.com/operator-framework/api/pkg/validation/internal/bundle.go: validateBundleSize
fn size(files: &[BundleFile]) -> Vec<Diagnostic> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let written = files.iter().try_for_each(|file| encoder.write_all(&file.bytes));
    let size = written.and_then(|()| encoder.finish()).map_or(0, |bytes| bytes.len());
    let code = match size {
        0..SIZE_NEAR => return Vec::new(),
        SIZE_NEAR..=SIZE_MAX => DefectCode::BundleAdvice,
        _ => DefectCode::BundleFile,
    };
    let message = format!(
        "the bundle has {} KiB compressed, and OLM v0 unpacks {} KiB at most",
        size >> 10,
        SIZE_MAX >> 10
    );
    vec![code.diagnostic("manifests", message)]
}

/// Capability levels.
const CAPABILITIES: [&str; 5] =
    ["Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"];
/// Categories of OperatorHub.io.
const CATEGORIES: [&str; 16] = [
    "AI/Machine Learning",
    "Application Runtime",
    "Big Data",
    "Cloud Provider",
    "Database",
    "Developer Tools",
    "Integration & Delivery",
    "Logging & Tracing",
    "Modernization & Migration",
    "Monitoring",
    "Networking",
    "Observability",
    "OpenShift Optional",
    "Security",
    "Storage",
    "Streaming & Messaging",
];

/// Refuses what is written in an annotation and not known.
fn known_texts(
    csv: &BundleManifest<'_>,
    annotation: &str,
    known: &[&str],
    separator: Option<char>,
    defects: &mut Vec<Diagnostic>,
) {
    let Some(written) = csv.value["metadata"]["annotations"][annotation].as_str() else { return };
    let texts: Vec<&str> = match separator {
        Some(separator) => written.split(separator).map(str::trim).collect(),
        None => vec![written],
    };
    for text in texts.into_iter().filter(|text| !known.contains(text)) {
        let field = format!("metadata.annotations.{annotation}");
        let message = format!("`{text}` is none of {}", known.join(", "));
        defects.push(csv.defect(&field, DefectCode::BundleFile, message));
    }
}

fn contains(list: &Value, wanted: &[&str]) -> bool {
    let mut items = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    items.any(|it| wanted.contains(&it))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{BundleSuite, check_suites};
    use crate::bundle::BundleFile;
    use crate::diagnostic::Diagnostic;

    /// What a suite reports of a ClusterServiceVersion with these annotations, fields of `spec`, and one
    /// object beside it; a line each.
    fn reported(suite: BundleSuite, annotations: &str, spec: &str, object: &str) -> String {
        let csv = format!(
            "kind: ClusterServiceVersion\nmetadata: {{name: a.v1.0.0, annotations: {{{annotations}}}}}\n\
             spec: {{{spec}}}\n"
        );
        let file = |path: &str, text: &str| BundleFile {
            path: path.to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        let files = [file("manifests/csv.yaml", &csv), file("manifests/o.yaml", object)];
        let defects = check_suites(&files, &BTreeSet::from([suite]), None);
        let line = |it: &Diagnostic| format!("{}: {}", it.severity, it.message);
        defects.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn each_suite_reports_what_it_is_about_and_nothing_else() {
        use BundleSuite::{
            Capabilities, Categories, GoodPractices, Objects, OperatorHub, RemovedApis,
        };

        let all =
            "provider: {name: P}, version: 1.0.0, icon: [{mediatype: image/png, base64data: AA==}]";
        let deployments = "install: {spec: {deployments: []}}";
        let role = "kind: Role\nrules: [{apiGroups: [policy], resources: [poddisruptionbudgets], \
                    verbs: [create]}]";
        let binding = "apiVersion: rbac.authorization.k8s.io/v1beta1\nkind: RoleBinding";
        let cases = [
            (Capabilities, "capabilities: Deep Insights", "", "", ""),
            (Capabilities, "capabilities: Shallow", "", "", "error: `Shallow` is none of Basic"),
            (Categories, "categories: 'Security, Storage'", "", "", ""),
            (Categories, "categories: 'Security,Toys'", "", "", "error: `Toys` is none of AI/"),
            (OperatorHub, "", all, "", ""),
            (OperatorHub, "", &all.replace("png", "webp"), "", "error: `image/webp` is none of"),
            (
                OperatorHub,
                "",
                &format!("{all}, maintainers: [{{name: M, email: unknown}}]"),
                "",
                "error: `unknown` is not an address",
            ),
            (
                OperatorHub,
                "",
                &format!("{all}, links: [{{name: L, url: example.org}}]"),
                "",
                "error: `example.org` is not a URL",
            ),
            (GoodPractices, "", deployments, "", ""),
            (GoodPractices, "", "", "", "error: there is no deployment"),
            (Objects, "", "", role, "warning: it may keep the nodes"),
            (Objects, "", "", "kind: PodDisruptionBudget\nspec: {maxUnavailable: 50%}", ""),
            (RemovedApis, "", "", binding, "warning: Kubernetes 1.22 and later"),
            (
                RemovedApis,
                "",
                "minKubeVersion: 1.22.0",
                binding,
                "error: Kubernetes 1.22 and later",
            ),
        ];
        for (suite, annotations, spec, object, expected) in cases {
            let found = reported(suite, annotations, spec, object);
            let fits =
                if expected.is_empty() { found.is_empty() } else { found.starts_with(expected) };
            assert!(fits && found.lines().count() <= 1, "{suite:?}: {found:?}, not {expected:?}");
        }
    }
}
