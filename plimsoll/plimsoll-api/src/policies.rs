//! The admission policies that Plimsoll installs: what an API server answers to who deletes an Operator
//! (OPR-11), to who requests Actions, and to who offers a resolver (OPR-22).

use std::sync::LazyLock;

use serde_json::Value;

use crate::ApiKind;

const OPERATOR_DELETION: &str = include_str!("../policies/operator-deletion.yaml");
const RESOLVER_SERVICE: &str = include_str!("../policies/resolver-service.yaml");
const ACTIONS: &str = include_str!("../policies/actions.yaml");

static OPERATOR_POLICIES: LazyLock<Vec<Value>> =
    LazyLock::new(|| [OPERATOR_DELETION, RESOLVER_SERVICE].into_iter().flat_map(parse).collect());
static ACTION_POLICIES: LazyLock<Vec<Value>> = LazyLock::new(|| parse(ACTIONS));

fn parse(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("our policies are YAML: a test reads them")
}

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

/// The policies of Actions with their bindings: in whose name they are requested, what of them can be
/// changed, and who approves them.
pub fn action_policies() -> Vec<Value> {
    ACTION_POLICIES.clone()
}

/// The kind of a policy or a binding, and its name.
pub fn kind_and_name(object: &Value) -> Option<(ApiKind, &str)> {
    let kind = KINDS.into_iter().find(|it| object["kind"] == it.kind)?;
    Some((kind, object["metadata"]["name"].as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_is_bound() {
        let check = |objects: Vec<Value>, count: usize| {
            let of = |kind: &str, field: &str| -> Vec<String> {
                let objects = objects.iter().filter(|it| it["kind"] == kind);
                let text =
                    |it: &Value| it.pointer(field).and_then(Value::as_str).map(str::to_owned);
                objects.filter_map(text).collect()
            };
            let policies = of(KINDS[0].kind, "/metadata/name");
            assert_eq!(policies.len(), count);
            assert_eq!(of(KINDS[1].kind, "/spec/policyName"), policies);
            assert_eq!(objects.iter().filter_map(kind_and_name).count(), objects.len());
        };
        check(operator_policies(), 3);
        check(action_policies(), 3);
    }
}
