//! What is wrong with a policy, whatever is requested.

use plimsoll_api::olm::policy::{ActionPolicySpec, PolicyRules, PolicySubject, SubjectKind};
use plimsoll_resolve::range::masterminds::Range;

use crate::actions::attributes::NamedClass;
use crate::actions::check::{preconditions, unknown_class};

/// Returns what is wrong with a policy, each with the field: it cannot do what it says.
pub fn problems(policy: &ActionPolicySpec) -> Vec<String> {
    let mut found = subjects("spec.subjects", &policy.subjects);
    let modes = [("enforce", &policy.enforce), ("warn", &policy.warn), ("audit", &policy.audit)];
    for (mode, rules) in modes {
        found.extend(rules.iter().flat_map(|it| of_rules(&format!("spec.{mode}"), it)));
    }
    found
}

/// Returns the classes of a policy that do not exist, as sentences. They may be created later.
pub fn unknown_classes(policy: &ActionPolicySpec, classes: &[NamedClass]) -> Vec<String> {
    let named = policy.classes.iter().enumerate();
    let unknown = named.filter(|(_, name)| !classes.iter().any(|it| it.goes_by(name)));
    unknown
        .map(|(at, name)| format!("spec.classes[{at}]: {}", unknown_class(name, classes)))
        .collect()
}

fn of_rules(at: &str, rules: &PolicyRules) -> Vec<String> {
    let mut found = Vec::new();
    for (index, rule) in rules.attributes.iter().enumerate() {
        let at = format!("{at}.attributes[{index}]");
        if rule.required && rule.forbidden {
            found.push(format!("{at}: it is required and forbidden: leave out one of them"));
        }
        if let Err(error) = Range::parse(&rule.range).map_err(|error| error.to_string())
            && !rule.range.is_empty()
        {
            found.push(format!("{at}.range is {:?}: {error}", rule.range));
        }
    }
    found.extend(preconditions(&format!("{at}.preconditions"), &rules.preconditions));
    found.extend(subjects(&format!("{at}.approvers"), &rules.approvers));
    found
}

fn subjects(at: &str, subjects: &[PolicySubject]) -> Vec<String> {
    let problem = |(index, it): (usize, &PolicySubject)| match it.kind {
        SubjectKind::ServiceAccount if it.namespace.is_empty() => {
            Some(format!("{at}[{index}]: service account {} needs a namespace", it.name))
        }
        SubjectKind::User | SubjectKind::Group if !it.namespace.is_empty() => Some(format!(
            "{at}[{index}]: {} has a namespace, which only service accounts have",
            it.name
        )),
        _ => None,
    };
    subjects.iter().enumerate().filter_map(problem).collect()
}

#[cfg(test)]
mod tests {
    //! Policies that cannot do what they say.

    use serde::Deserialize as _;
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(spec: &Value, expected: &[&str]) {
        let found = problems(&ActionPolicySpec::deserialize(spec).expect("a policy"));
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn problems_name_the_field() {
        check(&json!({}), &[]);
        check(
            &json!({ "subjects": [
                { "kind": "ServiceAccount", "name": "ci" }, { "kind": "Group", "name": "dev", "namespace": "tea" },
                { "kind": "ServiceAccount", "name": "ci", "namespace": "tea" },
            ] }),
            &[
                "spec.subjects[0]: service account ci needs a namespace",
                "spec.subjects[1]: dev has a namespace",
            ],
        );
        let approvers = json!([{ "kind": "ServiceAccount", "name": "ci" }]);
        check(&json!({ "enforce": { "approvers": approvers } }), &["spec.enforce.approvers[0]: "]);
        let rule = |rule: Value| json!({ "warn": { "attributes": [rule] } });
        check(&rule(json!({ "name": "version", "range": ">=1.0.0 <2.0.0" })), &[]);
        check(
            &rule(json!({ "name": "version", "range": "soon" })),
            &["spec.warn.attributes[0].range is \"soon\": "],
        );
        check(
            &rule(json!({ "name": "version", "required": true, "forbidden": true })),
            &["spec.warn.attributes[0]: it is required and forbidden"],
        );
        let preconditions = json!({ "expressions": [{ "expression": "plan.changes.size() < 5" }, { "expression": "plan." }] });
        check(
            &json!({ "audit": { "preconditions": preconditions } }),
            &["spec.audit.preconditions.expressions[1].expression: "],
        );
    }

    #[test]
    fn classes_that_do_not_exist_are_named() {
        let classes = crate::actions::files::built_in_classes();
        let of = |class: &str| {
            let classes_of = vec!["operator-install".to_owned(), class.to_owned()];
            let policy = ActionPolicySpec { classes: classes_of, ..ActionPolicySpec::default() };
            unknown_classes(&policy, &classes)
        };
        assert!(of("operator-update").is_empty());
        let found = of("operator-instal");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("spec.classes[1]: there is no ActionClass `operator-instal`"));
        assert!(found[0].contains("operator-install"), "{found:?}");
    }
}
