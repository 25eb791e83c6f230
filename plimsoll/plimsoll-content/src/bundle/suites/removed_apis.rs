//! APIs that Kubernetes removed.

use plimsoll_resolve::version::parse_tolerant;
use semver::Version;

use super::{contains, text};
use crate::bundle::read::BundleManifest;
use crate::catalog::DefectCode;
use crate::diagnostic::Diagnostic;

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
pub(super) fn removed_apis(
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
