//! What is wrong with a policy, whatever is requested.

use plimsoll_api::olm::policy::{
    ActionPolicySpec, AttributeRule, PolicyRules, PolicySubject, SubjectKind,
};
use plimsoll_resolve::range::masterminds::Range;

use super::NAMESPACE_REFERENCE;
use crate::actions::attributes::{ATTRIBUTES, FLAGS, NamedClass, PARAMETER_PREFIX, text};
use crate::actions::check::{preconditions, unknown_class};
use crate::actions::{enumerated, fits};
use crate::deletion_plan::counted;

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
        if rules.attributes[..index].iter().any(|it| it.name == rule.name) {
            found.push(format!("{at}: {} has a rule already: write one for each name", rule.name));
        }
        found.extend(of_values(&at, rule));
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
    let is_one_user = |it: &PolicySubject| it.kind != SubjectKind::Group;
    let approvers = rules.approvers.iter().enumerate();
    let users = approvers.filter(|(at, it)| !rules.approvers[..*at].contains(it)).count();
    if let Some(count) = rules.approval_count
        && (1..usize::try_from(count).unwrap_or(usize::MAX)).contains(&users)
        && rules.approvers.iter().all(is_one_user)
    {
        let users = counted(users, "user", "users");
        found.push(format!("{at}.approvalCount is {count}, and {at}.approvers has {users}"));
    }
    found
}

/// Returns what is wrong with the values of an attribute.
fn of_values(at: &str, rule: &AttributeRule) -> Vec<String> {
    let AttributeRule { name, values, default, fixed, required, forbidden, .. } = rule;
    let is_flag = FLAGS.contains(&name.as_str());
    let is_text = ATTRIBUTES.contains(&name.as_str()) && !is_flag;
    // What is beside it is known when an Action is requested.
    let is_reference = |it: &str| it.contains(NAMESPACE_REFERENCE);
    // Parameters may have other texts of this form.
    let is_parameter = name.starts_with(PARAMETER_PREFIX);
    let is_unknown = |it: &str| {
        let rest = it.replace(NAMESPACE_REFERENCE, "").to_lowercase();
        rest.contains(if is_parameter { "$(name" } else { "$(" })
    };
    let unknown = |at: String, it: &str| {
        format!(
            "{at} is {it:?}: only {NAMESPACE_REFERENCE} is replaced, by the namespace of the Action"
        )
    };
    let mut found = Vec::new();
    let set = [("default", default), ("fixed", fixed)];
    for (field, value) in set.into_iter().filter_map(|(field, it)| Some((field, it.as_ref()?))) {
        let (at, shown) = (format!("{at}.{field}"), text(value));
        let is_listed = || values.iter().any(|it| fits(it, &shown));
        let is_used = !forbidden && (field == "fixed" || !required && fixed.is_none());
        if is_flag && !value.is_boolean() {
            found.push(format!("{at} is {value}: write true or false, without quotes"));
        } else if is_text && !value.is_string() {
            found.push(format!("{at} is {value}: write a text, in quotes"));
        } else if is_unknown(&shown) {
            found.push(unknown(at, &shown));
        } else if !value.is_string() && is_reference(&shown) {
            found
                .push(format!("{at} is {value}: {NAMESPACE_REFERENCE} is only replaced in a text"));
        } else if is_used
            && !values.is_empty()
            && !is_listed()
            && !values.iter().chain([&shown]).any(|it| is_reference(it))
        {
            found.push(format!(
                "{at} is {value}, which is none of its values {}",
                enumerated(values)
            ));
        }
    }
    for (index, value) in values.iter().enumerate() {
        let at = format!("{at}.values[{index}]");
        if is_unknown(value) {
            found.push(unknown(at, value));
        } else if is_flag && !["true", "false"].iter().any(|it| fits(value, it)) {
            found.push(format!("{at} is {value:?}: {name} is true or false"));
        }
    }
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
        let users =
            json!([{ "kind": "User", "name": "carol" }, { "kind": "User", "name": "dora" }]);
        let approved = |count: u32, approvers: &Value| json!({ "enforce": { "requiresApproval": true, "approvalCount": count, "approvers": approvers } });
        check(&approved(2, &users), &[]);
        check(&approved(3, &json!([])), &[]);
        check(
            &approved(2, &json!([users[0], users[0]])),
            &["spec.enforce.approvalCount is 2, and spec.enforce.approvers has 1 user"],
        );
        check(&approved(3, &json!([users[0], { "kind": "Group", "name": "sre" }])), &[]);
        check(
            &approved(3, &users),
            &["spec.enforce.approvalCount is 3, and spec.enforce.approvers has 2 users"],
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
    fn values_are_those_that_the_attribute_may_have() {
        let check = |rules: Value, expected: &[&str]| {
            check(&json!({ "enforce": { "attributes": rules } }), expected);
        };
        let at = "spec.enforce.attributes[0]";
        let one = |mut rule: Value, name: &str, expected: &str| {
            rule["name"] = name.into();
            let expected = format!("{at}{expected}");
            let expected = if expected == at { vec![] } else { vec![expected.as_str()] };
            check(json!([rule]), &expected);
        };
        one(json!({ "fixed": true, "values": ["true"] }), "dryRun", "");
        one(json!({ "default": false }), "installDependencies", "");
        one(
            json!({ "fixed": "true" }),
            "dryRun",
            ".fixed is \"true\": write true or false, without",
        );
        one(json!({ "default": "no" }), "installDependencies", ".default is \"no\": write true");
        one(
            json!({ "values": ["false", "yes"] }),
            "dryRun",
            ".values[1] is \"yes\": dryRun is true",
        );
        one(json!({ "fixed": 1.1 }), "version", ".fixed is 1.1: write a text, in quotes");
        one(json!({ "fixed": 5 }), "parameters.size", "");
        one(json!({ "fixed": "$(namespace)" }), "parameters.namespace", "");
        one(
            json!({ "fixed": "$(namepsace)" }),
            "parameters.namespace",
            ".fixed is \"$(namepsace)\": only",
        );
        one(json!({ "fixed": "$(POD_NAME)" }), "parameters.note", "");
        one(
            json!({ "fixed": ["$(namespace)"] }),
            "parameters.list",
            ".fixed is [\"$(namespace)\"]: $(namespace) is only replaced",
        );
        one(json!({ "values": ["$(user)-*"] }), "channel", ".values[0] is \"$(user)-*\": only");
        one(json!({ "fixed": "stable", "values": ["st*"] }), "channel", "");
        one(
            json!({ "default": "stable", "values": ["a", "b"] }),
            "channel",
            ".default is \"stable\", which is none of its values a and b",
        );
        one(json!({ "fixed": "c", "values": ["a"], "forbidden": true }), "channel", "");
        one(json!({ "default": "c", "values": ["a"], "required": true }), "channel", "");
        one(json!({ "fixed": "tea", "values": ["$(namespace)"] }), "parameters.namespace", "");
        let twice =
            json!([{ "name": "channel", "fixed": "a" }, { "name": "channel", "fixed": "b" }]);
        check(twice, &["spec.enforce.attributes[1]: channel has a rule already"]);
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
