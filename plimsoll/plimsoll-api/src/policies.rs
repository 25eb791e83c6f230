//! The admission policies that Plimsoll installs: what an API server answers to who deletes an Operator
//! (OPR-11), to who requests, executes or defines Actions, and to who offers a resolver (OPR-22).

use std::sync::LazyLock;

use serde_json::Value;

use crate::ApiKind;

const OPERATOR_DELETION: &str = include_str!("../policies/operator-deletion.yaml");
const RESOLVER_SERVICE: &str = include_str!("../policies/resolver-service.yaml");
const ACTION_REQUESTER: &str = include_str!("../policies/requester.yaml");
const ACTION_CHANGES: &str = include_str!("../policies/changes.yaml");
const ACTION_APPROVAL: &str = include_str!("../policies/approval.yaml");
const ACTION_ATTRIBUTES: &str = include_str!("../policies/attributes.yaml");
const ACTION_STATUS: &str = include_str!("../policies/status.yaml");
const ACTION_CLASSES: &str = include_str!("../policies/classes.yaml");
const ACTION_TRIGGERS: &str = include_str!("../policies/triggers.yaml");

static OPERATOR_POLICIES: LazyLock<Vec<Value>> =
    LazyLock::new(|| [OPERATOR_DELETION, RESOLVER_SERVICE].into_iter().flat_map(parse).collect());
static ACTION_POLICIES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let texts = [
        ACTION_REQUESTER,
        ACTION_CHANGES,
        ACTION_APPROVAL,
        ACTION_ATTRIBUTES,
        ACTION_STATUS,
        ACTION_CLASSES,
        ACTION_TRIGGERS,
    ];
    texts.into_iter().flat_map(parse).collect()
});

fn parse(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("our policies are YAML: a test reads them")
}

/// The kinds of policies and of their bindings.
pub const KINDS: [ApiKind; 4] = [
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
    ApiKind {
        group: "admissionregistration.k8s.io",
        version: "v1",
        kind: "MutatingAdmissionPolicy",
        plural: "mutatingadmissionpolicies",
    },
    ApiKind {
        group: "admissionregistration.k8s.io",
        version: "v1",
        kind: "MutatingAdmissionPolicyBinding",
        plural: "mutatingadmissionpolicybindings",
    },
];

/// The policies of the add-on layer with their bindings.
pub fn operator_policies() -> Vec<Value> {
    OPERATOR_POLICIES.clone()
}

/// Returns the policies of Actions that validate, with their bindings: in whose name they are requested,
/// what of them can be changed, who approves them, what fits their class, what a status says, who names a
/// class, and who says what led to an Action.
pub fn action_policies() -> Vec<Value> {
    ACTION_POLICIES.iter().filter(|it| !is_mutating(it)).cloned().collect()
}

/// Returns the policies that set the requester of Actions, with their bindings. API servers before
/// Kubernetes 1.36 do not serve their kinds.
pub fn requester_policies() -> Vec<Value> {
    ACTION_POLICIES.iter().filter(|it| is_mutating(it)).cloned().collect()
}

/// Returns whether an object is a policy that sets something, or the binding of one.
pub fn is_mutating(object: &Value) -> bool {
    object["kind"].as_str().is_some_and(|it| it.starts_with("Mutating"))
}

/// The kind of a policy or a binding, and its name.
pub fn kind_and_name(object: &Value) -> Option<(ApiKind, &str)> {
    let kind = KINDS.into_iter().find(|it| object["kind"] == it.kind)?;
    Some((kind, object["metadata"]["name"].as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes;

    #[test]
    fn each_policy_is_bound() {
        let check = |objects: Vec<Value>, [policy, binding]: [ApiKind; 2], count: usize| {
            let of = |kind: &str, field: &str| -> Vec<String> {
                let objects = objects.iter().filter(|it| it["kind"] == kind);
                let text =
                    |it: &Value| it.pointer(field).and_then(Value::as_str).map(str::to_owned);
                objects.filter_map(text).collect()
            };
            let policies = of(policy.kind, "/metadata/name");
            assert_eq!(policies.len(), count);
            assert_eq!(of(binding.kind, "/spec/policyName"), policies);
            assert_eq!(of(binding.kind, "/metadata/name"), policies);
            assert_eq!(objects.iter().filter_map(kind_and_name).count(), objects.len());
            assert_eq!(objects.len(), 2 * count);
        };
        let [policy, binding, mutating, mutating_binding] = KINDS;
        check(operator_policies(), [policy, binding], 3);
        check(action_policies(), [policy, binding], 8);
        check(requester_policies(), [mutating, mutating_binding], 1);
    }

    #[test]
    fn policies_know_the_names_of_all_built_in_classes() {
        let mut names = Vec::new();
        for class in classes::built_in() {
            names.push(class["metadata"]["name"].clone());
            names.extend(class["spec"]["aliases"].as_array().into_iter().flatten().cloned());
        }
        let names: Vec<String> =
            names.iter().filter_map(Value::as_str).map(|it| format!("'{it}'")).collect();
        let list = format!("[{}]", names.join(", "));
        let mut compared = 0;
        for policy in action_policies() {
            let variables = policy["spec"]["variables"].as_array().into_iter().flatten();
            for variable in variables.filter(|it| it["name"] == "builtIn") {
                assert_eq!(variable["expression"], list.as_str(), "{}", policy["metadata"]["name"]);
                compared += 1;
            }
        }
        assert_eq!(compared, 2);
    }
}
