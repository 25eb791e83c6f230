//! Rules of an Operator on which objects of its bundle are ready.
//!
//! They become the annotation [`READY_WHEN`] of these objects, so that whatever waits for the annotations of
//! manifests waits for them, and a revision contains the rules that it was made with.

use std::collections::BTreeSet;

use plimsoll_api::ObjectKey;
use plimsoll_api::olm::ReadinessRule;
use plimsoll_content::ready_when::{self, READY_WHEN};
use serde_json::{Value, json};

/// A rule that means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidRule {
    /// The path of the field, such as `spec.readyWhen[0].rule`.
    pub(crate) field: String,
    /// What is wrong with the field, as a clause.
    pub(crate) cause: String,
}

/// Returns the rules that mean nothing whatever the bundle contains.
pub(crate) fn problems(rules: &[ReadinessRule]) -> Vec<InvalidRule> {
    let problem = |(index, rule): (usize, &ReadinessRule)| {
        let key = ObjectKey {
            group: rule.group.clone(),
            kind: rule.kind.clone(),
            namespace: rule.namespace.clone(),
            name: rule.name.clone(),
        };
        let problem = ready_when::problem(&key, &rule.rule)?;
        let field = format!("spec.readyWhen[{index}].rule");
        Some(InvalidRule { field, cause: format!("{:?} {problem}", rule.rule) })
    };
    rules.iter().enumerate().filter_map(problem).collect()
}

/// Gives the rendered objects of a bundle the rules of its Operator.
///
/// # Errors
///
/// When a rule means nothing, or there is no object for it; the message says which and why.
pub fn annotate(objects: &mut [Value], rules: &[ReadinessRule]) -> Result<(), String> {
    if let Some(InvalidRule { field, cause }) = problems(rules).into_iter().next() {
        return Err(format!("{field}: {cause}"));
    }
    let mut used = BTreeSet::new();
    for object in objects {
        let Some(index) = rules.iter().position(|rule| selects(rule, object)) else { continue };
        used.insert(index);
        let annotations = &mut object["metadata"]["annotations"];
        if !annotations.is_object() {
            *annotations = json!({});
        }
        annotations[READY_WHEN] = rules[index].rule.as_str().into();
    }
    match (0..rules.len()).find(|index| !used.contains(index)) {
        None => Ok(()),
        Some(index) => Err(format!(
            "spec.readyWhen[{index}] selects no object of the bundle that no rule before it selects: \
             correct or remove it"
        )),
    }
}

/// Returns whether a rule is about an object.
fn selects(rule: &ReadinessRule, object: &Value) -> bool {
    let metadata = &object["metadata"];
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let is_any_or = |wanted: &str, field: &str| wanted.is_empty() || metadata[field] == *wanted;
    metadata.is_object()
        && group == rule.group
        && object["kind"] == *rule.kind
        && is_any_or(&rule.namespace, "namespace")
        && is_any_or(&rule.name, "name")
}

#[cfg(test)]
mod tests {
    //! Rules, and the annotations that follow from them.

    use super::*;

    fn rule(kind: &str, name: &str, rule: &str) -> ReadinessRule {
        let group = if kind == "Lamp" { "example.com" } else { "" };
        ReadinessRule {
            group: group.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            rule: rule.to_owned(),
            ..ReadinessRule::default()
        }
    }

    /// Returns the annotations of two Lamps and a ConfigMap, the second Lamp of which has one of its own.
    fn annotated(rules: &[ReadinessRule]) -> Result<String, String> {
        let object = |api_version: &str, kind: &str, metadata: Value| json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
        let own = json!({ (READY_WHEN): "false" });
        let mut objects = [
            object("example.com/v1", "Lamp", json!({ "name": "a", "namespace": "x" })),
            object("example.com/v1", "Lamp", json!({ "name": "b", "annotations": own })),
            object("v1", "ConfigMap", json!({ "name": "a" })),
        ];
        annotate(&mut objects, rules)?;
        let texts = objects.iter().map(|it| it["metadata"]["annotations"][READY_WHEN].as_str());
        Ok(texts.map(|it| it.unwrap_or("-")).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_first_rule_that_selects_an_object_counts() {
        let check = |rules: &[ReadinessRule], expected: &str| {
            assert_eq!(annotated(rules).as_deref(), Ok(expected), "{rules:?}");
        };
        check(&[], "- false -");
        check(&[rule("Lamp", "", "conditions")], "conditions conditions -");
        check(&[rule("Lamp", "a", "true"), rule("Lamp", "", "conditions")], "true conditions -");
        check(&[rule("ConfigMap", "a", "true")], "- false true");
        let elsewhere = ReadinessRule { namespace: "x".into(), ..rule("Lamp", "", "true") };
        check(&[elsewhere], "true false -");
    }

    #[test]
    fn rules_that_mean_nothing_are_refused() {
        let check = |rules: &[ReadinessRule], expected: &str| {
            let found = annotated(rules).expect_err("it is refused");
            assert!(found.starts_with(expected), "{found}");
        };
        check(
            &[rule("Lamp", "", "true"), rule("Lamp", "a", "1 + 1")],
            "spec.readyWhen[1].rule: \"1 + 1\" is neither `conditions` nor a rule",
        );
        check(
            &[rule("Namespace", "", "true")],
            "spec.readyWhen[0].rule: \"true\" has no effect on objects of kind Namespace",
        );
        let unused = "spec.readyWhen[1] selects no object of the bundle";
        check(&[rule("Lamp", "", "true"), rule("Lamp", "a", "true")], unused);
        check(&[rule("Lamp", "", "true"), rule("Lamp", "c", "true")], unused);
    }
}
