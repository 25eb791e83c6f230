//! Objects that can keep nodes from being drained, or that change the whole cluster.

use serde_json::Value;

use super::contains;
use crate::bundle::read::BundleManifest;
use crate::catalog::DefectCode;
use crate::diagnostic::Diagnostic;

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
pub(super) fn objects(manifests: &[BundleManifest<'_>], defects: &mut Vec<Diagnostic>) {
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
