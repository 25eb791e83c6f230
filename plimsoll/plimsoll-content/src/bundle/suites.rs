//! What authors of bundles are told on request: recommendations, what a catalog demands of those who
//! publish in it, and APIs that Kubernetes does not serve any more.

use std::collections::BTreeSet;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_resolve::version::{parse_strict, parse_tolerant};
use semver::Version;
use serde_json::Value;

use super::BundleFile;
use super::metadata::{BundleMetadata, read as read_metadata};
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

/// Upstream: github.com/operator-framework/api/pkg/validation/internal/good_practices.go: validateGoodPracticesFrom
fn good_practices(
    csv: &BundleManifest<'_>,
    metadata: &[BundleManifest<'_>],
    defects: &mut Vec<Diagnostic>,
) {
    let mut advise = |field: &str, text: String| {
        defects.push(csv.defect(field, DefectCode::BundleAdvice, text));
    };
    for relation in ["owned", "required"] {
        let field = format!("spec.customresourcedefinitions.{relation}");
        for (index, it) in
            csv.list(&format!("/spec/customresourcedefinitions/{relation}")).iter().enumerate()
        {
            if text(&it["description"]).is_empty() {
                let name = text(&it["name"]);
                advise(
                    &format!("{field}[{index}]"),
                    format!("the {relation} definition {name} has no description"),
                );
            }
        }
    }
    let name = csv.name();
    let version = name.find(".v").map(|at| &name[at + 2..]);
    let ending = |text: &str| {
        let starts = text.match_indices(|it: char| it.is_ascii_digit()).map(|(at, _)| at);
        starts.map(|at| &text[at..]).any(|text| parse_strict(text).is_ok())
    };
    if !ending(version.unwrap_or(name)) {
        advise(
            "metadata.name",
            format!("the name {name} does not end in a version MAJOR.MINOR.PATCH"),
        );
    }
    if name.split(".v").count() != 2 {
        advise("metadata.name", format!("the name {name} has not the form NAME.vVERSION"));
    }
    for (index, deployment) in csv.list("/spec/install/spec/deployments").iter().enumerate() {
        let containers = deployment.pointer("/spec/template/spec/containers");
        for container in containers.and_then(Value::as_array).into_iter().flatten() {
            if !container["resources"]["requests"].is_object() {
                let field = format!("spec.install.spec.deployments[{index}]");
                let name = text(&container["name"]);
                advise(
                    &field,
                    format!(
                        "the container {name} requests neither processor time nor memory: where a \
                         quota demands requests its pods cannot be created"
                    ),
                );
            }
        }
    }
    if ["permissions", "clusterPermissions"].iter().any(|field| defines_kinds(csv, field)) {
        advise(
            "spec.install",
            "it may create definitions: let a package bring them that it depends on".to_owned(),
        );
    }
    // A package without one may be meant so, and then has an empty list.
    if csv.value.pointer("/spec/install/spec/deployments").is_none_or(Value::is_null) {
        let text = "there is no deployment to install";
        defects.push(csv.defect("spec.install", DefectCode::BundleFile, text));
    }
    channels(metadata, defects);
}

fn channels(metadata: &[BundleManifest<'_>], defects: &mut Vec<Diagnostic>) {
    let BundleMetadata { channels, default_channel, .. } =
        read_metadata("", metadata, &mut Vec::new()).unwrap_or_default();
    let names: BTreeSet<String> = channels.into_iter().chain(default_channel).collect();
    let known = ["candidate", "fast", "stable"];
    let others: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !name.is_empty() && !known.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    let Some(manifest) = metadata.iter().find(|it| it.value["annotations"].is_object()) else {
        return;
    };
    if !others.is_empty() {
        let text = format!(
            "channels are recommended to begin with candidate, fast or stable, unlike {}",
            others.join(", ")
        );
        defects.push(manifest.defect("annotations", DefectCode::BundleAdvice, text));
    }
}

/// Whether a rule lets the operator define kinds.
fn defines_kinds(csv: &BundleManifest<'_>, field: &str) -> bool {
    let has = |rule: &Value, field: &str, wanted: &[&str]| {
        let items = rule[field].as_array().into_iter().flatten();
        items.filter_map(Value::as_str).any(|it| wanted.contains(&it))
    };
    csv.list(&format!("/spec/install/spec/{field}"))
        .iter()
        .flat_map(|permission| permission["rules"].as_array().into_iter().flatten())
        .any(|rule| {
            has(rule, "apiGroups", &["apiextensions.k8s.io"])
                && has(rule, "resources", &["customresourcedefinitions", "*"])
                && has(rule, "verbs", &["create", "patch", "*"])
        })
}

/// Types of icons that consoles show.
const ICON_TYPES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/svg+xml"];

/// Upstream: github.com/operator-framework/api/pkg/validation/internal/operatorhubv2.go: validateHubCSVSpecV2
fn operator_hub(csv: &BundleManifest<'_>, defects: &mut Vec<Diagnostic>) {
    let mut report = |field: &str, code: DefectCode, text: String| {
        defects.push(csv.defect(field, code, text));
    };
    let mut refuse = |field: &str, text: String| report(field, DefectCode::BundleFile, text);
    if csv.text("/spec/provider/name").trim().is_empty() {
        refuse("spec", "spec.provider.name is missing".to_owned());
    }
    for (index, it) in csv.list("/spec/maintainers").iter().enumerate() {
        let field = format!("spec.maintainers[{index}]");
        let (name, email) = (text(&it["name"]), text(&it["email"]));
        if name.is_empty() || email.is_empty() {
            refuse(&field, "a maintainer has a name and an email".to_owned());
        }
        if !email.is_empty() && !is_address(email) {
            refuse(&field, format!("`{email}` is not an address for email"));
        }
    }
    for (index, it) in csv.list("/spec/links").iter().enumerate() {
        let field = format!("spec.links[{index}]");
        let (name, url) = (text(&it["name"]), text(&it["url"]));
        if name.is_empty() || url.is_empty() {
            refuse(&field, "a link has a name and a url".to_owned());
        }
        if !url.is_empty() && !is_address_of_page(url) {
            refuse(&field, format!("`{url}` is not a URL: write it with its scheme"));
        }
    }
    let version = csv.text("/spec/version");
    if version.is_empty() || version == "0.0.0" {
        refuse("spec", "spec.version is missing".to_owned());
    }
    let icons = csv.list("/spec/icon");
    if icons.len() > 1 {
        refuse("spec.icon", format!("there are {} icons: only one is shown", icons.len()));
    }
    if let Some(icon) = icons.first() {
        let media_type = text(&icon["mediatype"]);
        if media_type.is_empty() || text(&icon["base64data"]).is_empty() {
            refuse("spec.icon[0]", "an icon has a mediatype and base64data".to_owned());
        }
        if !media_type.is_empty() && !ICON_TYPES.contains(&media_type) {
            let known = ICON_TYPES.join(", ");
            refuse("spec.icon[0]", format!("`{media_type}` is none of {known}"));
        }
    } else {
        report("spec", DefectCode::BundleAdvice, "spec.icon is missing".to_owned());
    }
}

/// Whether a text is a name with an address behind it, or an address.
fn is_address(text: &str) -> bool {
    let address = match text.rsplit_once('<') {
        Some((_, rest)) => rest.strip_suffix('>').unwrap_or_default(),
        None => text,
    };
    let is_part = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
    address.split_once('@').is_some_and(|(user, host)| is_part(user) && is_part(host))
}

/// Whether a text is an absolute URL or an absolute path.
fn is_address_of_page(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|it: char| it.is_ascii_alphabetic())
            && scheme.bytes().all(|it| it.is_ascii_alphanumeric() || b"+-.".contains(&it))
    };
    !text.contains(char::is_control)
        && (text.starts_with('/')
            || text.split_once(':').is_some_and(|(scheme, _)| is_scheme(scheme)))
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

/// SecurityContextConstraints that every OpenShift cluster has.
const DEFAULT_CONSTRAINTS: [&str; 8] = [
    "anyuid",
    "hostaccess",
    "hostmount-anyuid",
    "hostnetwork",
    "node-exporter",
    "nonroot",
    "privileged",
    "restricted",
];

/// Upstream: github.com/operator-framework/api/pkg/validation/internal/object.go: validateObjects
fn objects(manifests: &[BundleManifest<'_>], defects: &mut Vec<Diagnostic>) {
    for manifest in manifests {
        let mut report = |field: &str, code: DefectCode, text: &str| {
            defects.push(manifest.defect(field, code, text));
        };
        let spec = &manifest.value["spec"];
        match manifest.kind() {
            "PodDisruptionBudget" => {
                if spec["maxUnavailable"] == 0 || spec["maxUnavailable"] == "0%" {
                    let text = "no pod may be unavailable: nodes could not be drained";
                    report("spec.maxUnavailable", DefectCode::BundleFile, text);
                }
                if spec["minAvailable"] == "100%" {
                    let text = "all pods have to be available: nodes could not be drained";
                    report("spec.minAvailable", DefectCode::BundleFile, text);
                }
            }
            "PriorityClass" if manifest.value["globalDefault"] == true => {
                let text = "it would be the priority of every pod of the cluster that has none";
                report("globalDefault", DefectCode::BundleFile, text);
            }
            "Role" | "ClusterRole" => {
                for (index, rule) in manifest.list("/rules").iter().enumerate() {
                    let field = format!("rules[{index}]");
                    if allows(
                        rule,
                        "policy",
                        "poddisruptionbudgets",
                        &["*", "create", "update", "patch"],
                    ) {
                        let text = "it may keep the nodes of the cluster from being drained, with \
                                    PodDisruptionBudgets";
                        report(&field, DefectCode::BundleAdvice, text);
                    }
                    let changes = ["*", "delete", "update", "patch"];
                    let group = "security.openshift.io";
                    if allows(rule, group, "securitycontextconstraints", &changes)
                        && contains(&rule["resourceNames"], &DEFAULT_CONSTRAINTS)
                    {
                        let text = "it may change SecurityContextConstraints that the cluster \
                                    itself needs";
                        report(&field, DefectCode::BundleFile, text);
                    }
                }
            }
            _ => {}
        }
    }
}

fn allows(rule: &Value, group: &str, resource: &str, verbs: &[&str]) -> bool {
    contains(&rule["apiGroups"], &[group])
        && contains(&rule["resources"], &[resource])
        && contains(&rule["verbs"], verbs)
}

fn contains(list: &Value, wanted: &[&str]) -> bool {
    let mut items = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    items.any(|it| wanted.contains(&it))
}

/// Versions of APIs that a minor version of Kubernetes 1 removed, with the kinds that had it.
const REMOVED: [(u64, &str, &[&str]); 19] = [
    (
        22,
        "admissionregistration.k8s.io/v1beta1",
        &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"],
    ),
    (22, "apiextensions.k8s.io/v1beta1", &["CustomResourceDefinition"]),
    (22, "apiregistration.k8s.io/v1beta1", &["APIService"]),
    (22, "authentication.k8s.io/v1beta1", &["TokenReview"]),
    (
        22,
        "authorization.k8s.io/v1beta1",
        &["LocalSubjectAccessReview", "SelfSubjectAccessReview", "SubjectAccessReview"],
    ),
    (22, "certificates.k8s.io/v1beta1", &["CertificateSigningRequest"]),
    (22, "coordination.k8s.io/v1beta1", &["Lease"]),
    (22, "extensions/v1beta1", &["Ingress"]),
    (22, "networking.k8s.io/v1beta1", &["Ingress", "IngressClass"]),
    (
        22,
        "rbac.authorization.k8s.io/v1beta1",
        &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    ),
    (22, "scheduling.k8s.io/v1beta1", &["PriorityClass"]),
    (22, "storage.k8s.io/v1beta1", &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"]),
    (25, "autoscaling/v2beta1", &["HorizontalPodAutoscaler"]),
    (25, "batch/v1beta1", &["CronJob"]),
    (25, "discovery.k8s.io/v1beta1", &["EndpointSlice"]),
    (25, "events.k8s.io/v1beta1", &["Event"]),
    (25, "node.k8s.io/v1beta1", &["RuntimeClass"]),
    (25, "policy/v1beta1", &["PodDisruptionBudget", "PodSecurityPolicy"]),
    (26, "autoscaling/v2beta2", &["HorizontalPodAutoscaler"]),
];

/// Reports uses of APIs that are not served any more: errors if the bundle is meant for a version of
/// Kubernetes without them.
///
/// Upstream: github.com/operator-framework/api/pkg/validation/internal/removed_apis.go: validateDeprecatedAPIS
fn removed_apis(
    csv: &BundleManifest<'_>,
    manifests: &[BundleManifest<'_>],
    kubernetes: Option<&Version>,
    defects: &mut Vec<Diagnostic>,
) {
    let minimum = parse_tolerant(csv.text("/spec/minKubeVersion")).ok();
    let minor = [kubernetes, minimum.as_ref()]
        .into_iter()
        .flatten()
        .map(|version| if version.major > 1 { u64::MAX } else { version.minor })
        .max()
        .unwrap_or(0);
    let mut report = |manifest: &BundleManifest<'_>, field: &str, api_version: &str, kind: &str| {
        let found = REMOVED
            .iter()
            .find(|(_, removed, kinds)| *removed == api_version && kinds.contains(&kind));
        let Some((removed, ..)) = found else { return };
        let code =
            if minor >= *removed { DefectCode::BundleFile } else { DefectCode::BundleAdvice };
        let text = format!(
            "Kubernetes 1.{removed} and later do not serve {kind} of {api_version}: write it in a \
             version that they serve"
        );
        defects.push(manifest.defect(field, code, text));
    };
    for manifest in manifests {
        report(manifest, "apiVersion", manifest.text("/apiVersion"), manifest.kind());
    }
    for relation in ["owned", "required"] {
        let pointer = format!("/spec/customresourcedefinitions/{relation}");
        for (index, description) in csv.list(&pointer).iter().enumerate() {
            let resources = description["resources"].as_array().into_iter().flatten();
            for (position, resource) in resources.enumerate() {
                let field = format!(
                    "spec.customresourcedefinitions.{relation}[{index}].resources[{position}]"
                );
                report(csv, &field, text(&resource["version"]), text(&resource["kind"]));
            }
        }
    }
    for field in ["permissions", "clusterPermissions"] {
        let permissions = csv.list(&format!("/spec/install/spec/{field}")).iter();
        for (index, permission) in permissions.enumerate() {
            let mut rules = permission["rules"].as_array().into_iter().flatten();
            let uses_policies = rules.any(|rule| {
                contains(&rule["apiGroups"], &["policy"])
                    && contains(&rule["resources"], &["podsecuritypolicies"])
            });
            if uses_policies {
                let text = "a rule is about PodSecurityPolicies, which Kubernetes 1.25 and later do \
                            not have: remove it";
                let field = format!("spec.install.spec.{field}[{index}]");
                defects.push(csv.defect(&field, DefectCode::BundleAdvice, text));
            }
        }
    }
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
