//! The admission policies that Plimsoll installs: what an API server answers to who deletes an Operator
//! (OPR-11).

use std::sync::LazyLock;

use serde_json::Value;

use crate::ApiKind;

const OPERATOR_DELETION: &str = include_str!("../policies/operator-deletion.yaml");

static OPERATOR_POLICIES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    serde_saphyr::from_multiple(OPERATOR_DELETION)
        .expect("our policies are YAML: a test reads them")
});

/// The kinds of policies and of their bindings.
pub const KINDS: [ApiKind; 2] = [
    ApiKind {
        group: "admissionregistration.k8s.io",
        version: "v1",
        kind: "ValidatingAdmissionPolicy",
        plural: "validatingadmissionpolicies",
    },
    ApiKind {
        group: "admissionregistration.k8s.io",
        version: "v1",
        kind: "ValidatingAdmissionPolicyBinding",
        plural: "validatingadmissionpolicybindings",
    },
];

/// The policies of the add-on layer with their bindings.
pub fn operator_policies() -> Vec<Value> {
    OPERATOR_POLICIES.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_is_bound() {
        let of = |kind: &str, field: &str| -> Vec<String> {
            let objects = operator_policies().into_iter().filter(|it| it["kind"] == kind);
            let text = |it: Value| it.pointer(field).and_then(Value::as_str).map(str::to_owned);
            objects.filter_map(text).collect()
        };
        let policies = of(KINDS[0].kind, "/metadata/name");
        assert_eq!(policies.len(), 2);
        assert_eq!(of(KINDS[1].kind, "/spec/policyName"), policies);
    }
}
