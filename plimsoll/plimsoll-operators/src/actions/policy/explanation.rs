//! Explanation of policies: what their rules demand, in sentences.

use plimsoll_api::olm::action::{ActionPreconditions, PlanExpression};
use plimsoll_api::olm::policy::{AttributeRule, PolicyRules};
use serde::Serialize;

use crate::actions::approvals::ApprovalRule;
use crate::actions::attributes::text;

/// A rule of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedRule {
    /// The field of the policy, as decisions name it; empty if there is no rule.
    pub rule: String,
    /// What has to hold, as a sentence without a full stop.
    pub meaning: String,
}

/// Returns the rules, in the order in which they are checked; one that says so if there are none.
pub fn explained(rules: &PolicyRules) -> Vec<ExplainedRule> {
    let rule = |rule: String, meaning: String| ExplainedRule { rule, meaning };
    let mut found = Vec::new();
    for attribute in &rules.attributes {
        let parts = attribute_parts(attribute).into_iter();
        let named = |(part, meaning): (&str, String)| {
            rule(format!("attributes[{}].{part}", attribute.name), meaning)
        };
        found.extend(parts.map(named));
    }
    for (field, names, what) in [
        ("packages", &rules.packages, "Operators that the plan changes are"),
        ("catalogs", &rules.catalogs, "what is installed is of catalog"),
        ("channels", &rules.channels, "what is installed is of channel"),
    ] {
        if !names.is_empty() {
            found.push(rule(field.to_owned(), format!("{what} {}", names.join(" or "))));
        }
    }
    if let Some(max) = rules.max_active {
        let meaning = format!("at most {max} Actions of the namespace have not ended");
        found.push(rule("maxActive".to_owned(), meaning));
    }
    if let Some(max) = rules.max_operators {
        let meaning =
            format!("at most {max} Operators are there that Actions of the namespace created");
        found.push(rule("maxOperators".to_owned(), meaning));
    }
    let preconditions = preconditions(&rules.preconditions).into_iter();
    found.extend(preconditions.map(|(field, it)| rule(format!("preconditions.{field}"), it)));
    if let Some(approval) = ApprovalRule::of(rules) {
        let meaning = format!("the plan has {}, other than the requester", approval.demand());
        found.push(rule("requiresApproval".to_owned(), meaning));
    }
    if found.is_empty() {
        found.push(rule(String::new(), "without a condition".to_owned()));
    }
    found
}

/// Returns the parts of the rule of an attribute, each with what has to hold.
fn attribute_parts(rule: &AttributeRule) -> Vec<(&'static str, String)> {
    let name = &rule.name;
    let mut parts = Vec::new();
    if rule.required {
        parts.push(("required", format!("{name} is given")));
    }
    if rule.forbidden {
        parts.push(("forbidden", format!("{name} is not given")));
    }
    if let Some(fixed) = &rule.fixed {
        parts.push(("fixed", format!("{name} is {}, whether it is given or not", text(fixed))));
    }
    if let Some(default) = &rule.default {
        parts.push(("default", format!("{name} is {} if it is not given", text(default))));
    }
    if !rule.values.is_empty() && !rule.forbidden {
        parts.push(("values", format!("{name} is {}", rule.values.join(" or "))));
    }
    if !rule.range.is_empty() {
        parts.push(("range", format!("versions of the plan are in range {}", rule.range)));
    }
    if parts.is_empty() {
        parts.push(("name", format!("{name} may be given")));
    }
    parts
}

/// Returns the preconditions, each with what has to hold.
fn preconditions(preconditions: &ActionPreconditions) -> Vec<(&'static str, String)> {
    let ActionPreconditions {
        consistent,
        no_workload_removal,
        no_orphans,
        no_definition_removal,
        no_new_cluster_permissions,
        within_maintenance_window,
        expressions,
    } = preconditions;
    let mut found = Vec::new();
    if *consistent {
        found.push(("consistent", "all requirements are satisfied afterwards".to_owned()));
    }
    if *no_workload_removal {
        let meaning = "no Operator goes that has objects of its kinds";
        found.push(("noWorkloadRemoval", meaning.to_owned()));
    }
    if *no_orphans {
        found.push(("noOrphans", "no dependency is left that nothing depends on".to_owned()));
    }
    if *no_definition_removal {
        let meaning = "no CustomResourceDefinition goes".to_owned();
        found.push(("noDefinitionRemoval", meaning));
    }
    if *no_new_cluster_permissions {
        let meaning =
            "no bundle brings permissions in all namespaces that the installed one does not have";
        found.push(("noNewClusterPermissions", meaning.to_owned()));
    }
    if let Some(window) = within_maintenance_window {
        let zone = if window.time_zone.is_empty() { "UTC" } else { &window.time_zone };
        let meaning = match window.name.as_str() {
            "" => {
                format!("it begins within {} after {} in {zone}", window.duration, window.schedule)
            }
            name => format!("it begins while MaintenanceWindow {name} is open"),
        };
        found.push(("withinMaintenanceWindow", meaning));
    }
    for PlanExpression { expression, message } in expressions {
        let meaning = match message.as_str() {
            "" => format!("`{expression}` holds of the plan"),
            message => format!("`{expression}` holds of the plan, or: {message}"),
        };
        found.push(("expressions", meaning));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_rule_is_a_sentence() {
        let check = |rules: Value, expected: &[&str]| {
            let rules: PolicyRules = serde_json::from_value(rules).unwrap();
            let found: Vec<String> =
                explained(&rules).iter().map(|it| format!("{}: {}", it.rule, it.meaning)).collect();
            assert_eq!(found, expected);
        };
        check(json!({}), &[": without a condition"]);
        check(
            json!({
                "attributes": [
                    { "name": "version", "required": true, "range": "<2" },
                    { "name": "channel", "forbidden": true },
                    { "name": "installDependencies", "fixed": false },
                    { "name": "dryRun", "default": true, "values": ["true", "false"] },
                    { "name": "parameters.namespace" },
                ],
                "packages": ["lantern", "tidewatch-*"], "catalogs": ["curated"],
                "channels": ["stable", "lts"], "maxActive": 5, "maxOperators": 3,
                "approvalCount": 2, "approvers": [{ "kind": "Group", "name": "sre" }],
            }),
            &[
                "attributes[version].required: version is given",
                "attributes[version].range: versions of the plan are in range <2",
                "attributes[channel].forbidden: channel is not given",
                "attributes[installDependencies].fixed: installDependencies is false, whether it is given \
                 or not",
                "attributes[dryRun].default: dryRun is true if it is not given",
                "attributes[dryRun].values: dryRun is true or false",
                "attributes[parameters.namespace].name: parameters.namespace may be given",
                "packages: Operators that the plan changes are lantern or tidewatch-*",
                "catalogs: what is installed is of catalog curated",
                "channels: what is installed is of channel stable or lts",
                "maxActive: at most 5 Actions of the namespace have not ended",
                "maxOperators: at most 3 Operators are there that Actions of the namespace created",
                "requiresApproval: the plan has 2 approvals of group sre, other than the requester",
            ],
        );
        check(
            json!({ "preconditions": {
                "consistent": true, "noWorkloadRemoval": true, "noOrphans": true,
                "noDefinitionRemoval": true, "noNewClusterPermissions": true,
                "withinMaintenanceWindow": { "schedule": "0 22 * * *", "duration": "4h" },
                "expressions": [
                    { "expression": "plan.changes.size() < 5", "message": "too much at once" },
                    { "expression": "true" },
                ],
            } }),
            &[
                "preconditions.consistent: all requirements are satisfied afterwards",
                "preconditions.noWorkloadRemoval: no Operator goes that has objects of its kinds",
                "preconditions.noOrphans: no dependency is left that nothing depends on",
                "preconditions.noDefinitionRemoval: no CustomResourceDefinition goes",
                "preconditions.noNewClusterPermissions: no bundle brings permissions in all namespaces that the installed \
                 one does not have",
                "preconditions.withinMaintenanceWindow: it begins within 4h after 0 22 * * * in UTC",
                "preconditions.expressions: `plan.changes.size() < 5` holds of the plan, or: too much at once",
                "preconditions.expressions: `true` holds of the plan",
            ],
        );
    }
}
