//! Compilation of ActionPolicies to a ValidatingAdmissionPolicy, which API servers evaluate without a webhook.
//!
//! It refuses requests that no policy grants, whatever their plan. What CEL cannot say of a request (ranges of
//! versions, conditions on the plan, approvals, how many Actions there are) holds there, and is looked at when the
//! Action is executed, as is everything else once more. So it refuses nothing that the controller would grant.

use plimsoll_api::olm::action::ActionPreconditions;
use plimsoll_api::olm::policy::{AttributeRule, PolicyRules, PolicySubject, SubjectKind};
use plimsoll_api::olm::{LabelOperator, LabelRequirement};
use serde_json::{Value, json};

use super::{GUARDED, NAMESPACE_REFERENCE, NamedPolicy};
use crate::actions::attributes::{
    ATTRIBUTES, FLAGS, NamedClass, PARAMETER_PREFIX, SPELLINGS, is_spelled, text,
};
use crate::actions::planning::{AUTOREMOVE, DELETE, INSTALL, RESOLUTION, UPDATE, is_of_release};
use crate::actions::subjects::SERVICE_ACCOUNT_PREFIX;

/// The name of the ValidatingAdmissionPolicy and of its binding.
const NAME: &str = "action-policies.plimsoll.io";

/// An admission policy that says the same as ActionPolicies, as far as it can.
#[derive(Debug, Clone, PartialEq)]
pub struct CompiledPolicies {
    /// The policy and its binding.
    pub objects: Vec<Value>,
    /// The rules that are left to the controller, as `POLICY: RULE`.
    pub left: Vec<String>,
}

/// Compiles policies, by name. `classes` are all classes of the cluster.
pub fn compiled(policies: &[NamedPolicy], classes: &[NamedClass]) -> CompiledPolicies {
    let mut left = Vec::new();
    let mut variables = common_variables(classes);
    let (mut grants, mut reasons) = (Vec::new(), Vec::new());
    let enforcing = policies.iter().filter_map(|it| Some((it, it.spec.enforce.as_ref()?)));
    for (at, (policy, rules)) in enforcing.enumerate() {
        let about: Vec<&NamedClass> = classes
            .iter()
            .filter(|class| policy.spec.classes.iter().any(|it| class.goes_by(it)))
            .collect();
        let mut compiler = Compiler { policy, classes: about, left: Vec::new() };
        let broken = compiler.broken(rules);
        left.extend(compiler.left.iter().map(|it| format!("{}: {it}", policy.name)));
        variables.push(variable(&format!("about{at}"), compiler.about()));
        variables.push(variable(&format!("broken{at}"), broken));
        grants.push(format!("(variables.about{at} && size(variables.broken{at}) == 0)"));
        let prefix = literal(&format!("ActionPolicy {}: ", policy.name));
        reasons.push(format!(
            "(variables.about{at} ? variables.broken{at}.map(it, {prefix} + it) : [])"
        ));
    }
    for NamedPolicy { name, spec } in policies {
        let modes = [("warn", &spec.warn), ("audit", &spec.audit)];
        let set = modes.iter().filter(|(_, rules)| rules.is_some());
        left.extend(set.map(|(mode, _)| format!("{name}: {mode}")));
    }
    let guarded = classes.iter().filter(|class| {
        policies.iter().any(|policy| policy.spec.classes.iter().any(|it| class.goes_by(it)))
    });
    let guarded: Vec<&String> =
        guarded.flat_map(|it| std::iter::once(&it.name).chain(&it.spec.aliases)).collect();
    grants.insert(0, "variables.byHand".to_owned());
    reasons.insert(0, "dyn([])".to_owned());
    variables.push(variable("reasons", joined(&reasons, "+")));
    let spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": { "resourceRules": resource_rules() },
        "matchConditions": match_conditions(&guarded),
        "variables": variables,
        "validations": [{
            "expression": joined(&grants, "||"),
            "reason": "Forbidden",
            "messageExpression": message_expression(),
        }],
    });
    CompiledPolicies { objects: objects(spec), left }
}

/// Returns the admission policy with its binding.
fn objects(spec: Value) -> Vec<Value> {
    let object = |kind: &str, spec: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": { "name": NAME },
            "spec": spec,
        })
    };
    let binding = json!({ "policyName": NAME, "validationActions": ["Deny"] });
    vec![
        object("ValidatingAdmissionPolicy", spec),
        object("ValidatingAdmissionPolicyBinding", binding),
    ]
}

fn resource_rules() -> Value {
    let rule = |operation: &str, resources: &[&str]| {
        json!({
            "apiGroups": ["olm.io"], "apiVersions": ["v1"], "operations": [operation],
            "resources": resources, "scope": "Namespaced",
        })
    };
    json!([
        rule("CREATE", &["actions", "retryactions", "cronactions", "eventactions"]),
        rule("UPDATE", &["cronactions", "eventactions"]),
    ])
}

/// The requested Action, in CEL.
const ACTION: &str =
    "(request.resource.resource == 'actions' ? dyn(object.spec) : dyn(object.spec).template)";

fn match_conditions(guarded: &[&String]) -> Value {
    let condition =
        |name: &str, expression: String| json!({ "name": name, "expression": expression });
    json!([
        condition("is-of-class", format!("{ACTION}.actionClass in {}", json!(guarded))),
        // What is requested in the name of others was looked at when they asked for it.
        condition(
            "is-in-own-name",
            "!has(object.spec.requester) || object.spec.requester.username == request.userInfo.username"
                .to_owned(),
        ),
        condition(
            "is-requested",
            "request.operation == 'CREATE' || dyn(object.spec).template != dyn(oldObject.spec).template \
             || dyn(object.spec).?requester.orValue({}) != dyn(oldObject.spec).?requester.orValue({})"
                .to_owned(),
        ),
    ])
}

fn message_expression() -> &'static str {
    "'no ActionPolicy grants \"' + request.userInfo.username + '\" this Action of class ' \
     + variables.class + ' in namespace ' + request.namespace \
     + (size(variables.reasons) == 0 ? '' : ': ' + variables.reasons.join('; '))"
}

fn variable(name: &str, expression: impl Into<String>) -> Value {
    json!({ "name": name, "expression": expression.into() })
}

/// Returns the variables that all policies use.
fn common_variables(classes: &[NamedClass]) -> Vec<Value> {
    vec![
        variable("action", ACTION),
        variable("class", "string(variables.action.actionClass)"),
        variable("parameters", "variables.action.?parameters.orValue({})"),
        variable("groups", "request.userInfo.?groups.orValue([])"),
        variable("labels", "namespaceObject.metadata.?labels.orValue({})"),
        variable("packages", packages(classes)),
        variable("byHand", by_hand(classes)),
    ]
}

/// Returns the packages that a request names. What classes of others call so is not known.
fn packages(classes: &[NamedClass]) -> String {
    let of_packages = |it: &&NamedClass| {
        it.is_ours() && [INSTALL, UPDATE, DELETE, RESOLUTION].contains(&it.name.as_str())
    };
    let listed = classes.iter().filter(of_packages);
    let listed = any(listed.map(|it| format!("variables.class in {}", names(it))));
    format!(
        "(variables.action.?package.orValue('') == '' ? dyn([]) : dyn([variables.action.package])) \
         + ({listed} ? variables.parameters[?'packages'].orValue([]) \
         + variables.parameters[?'ranges'].orValue([]) : []).map(it, it.split('@')[0])"
    )
}

/// Returns whether the user may do by hand what the class does, which needs no policy.
fn by_hand(classes: &[NamedClass]) -> String {
    let mut expression = String::new();
    for class in classes.iter().filter(|it| it.is_ours()) {
        let (group, resource, verb) = match class.name.as_str() {
            INSTALL => ("olm.io", "operators", "create"),
            UPDATE => ("olm.io", "operators", "patch"),
            DELETE | AUTOREMOVE => ("olm.io", "operators", "delete"),
            RESOLUTION => ("olm.io", "catalogs", "list"),
            name if is_of_release(name) => ("config.openshift.io", "clusterversions", "patch"),
            _ => continue,
        };
        expression.push_str(&format!(
            "variables.class in {} ? authorizer.group('{group}').resource('{resource}')\
             .check('{verb}').allowed() : ",
            names(class)
        ));
    }
    expression.push_str("false");
    expression
}

/// Returns the names of a class as a list in CEL.
fn names(class: &NamedClass) -> Value {
    json!(std::iter::once(&class.name).chain(&class.spec.aliases).collect::<Vec<_>>())
}

/// A compiler of one policy.
struct Compiler<'a> {
    policy: &'a NamedPolicy,
    /// The classes that it is about.
    classes: Vec<&'a NamedClass>,
    /// The rules that are left to the controller.
    left: Vec<String>,
}

impl Compiler<'_> {
    /// Returns whether the policy is about the request.
    fn about(&self) -> String {
        let spec = &self.policy.spec;
        let classes: Vec<Value> = self.classes.iter().map(|it| names(it)).collect();
        let lists: Vec<String> =
            classes.iter().map(|it| format!("variables.class in {it}")).collect();
        let subjects: Vec<String> = spec.subjects.iter().map(subject).collect();
        let mut parts = vec![any(lists), any(subjects)];
        if !spec.namespaces.is_empty() {
            parts.push(fits("request.namespace", &spec.namespaces, literal));
        }
        if let Some(selector) = &spec.namespace_selector {
            let labels = selector.match_labels.iter().map(|(key, value)| {
                let (key, value) = (literal(key), literal(value));
                format!(
                    "variables.labels[?{key}].orValue('') == {value} && {key} in variables.labels"
                )
            });
            parts.extend(labels);
            parts.extend(selector.match_expressions.iter().map(requirement));
        }
        parts.join(" && ")
    }

    /// Returns the list of the rules that do not hold, in CEL.
    fn broken(&mut self, rules: &PolicyRules) -> String {
        let mut conditions: Vec<(String, String)> = Vec::new();
        let is_ours = self.classes.iter().any(|it| it.is_ours());
        for name in GUARDED.iter().filter(|_| is_ours) {
            if rules.attributes.iter().all(|it| it.name != **name) {
                let parameter = name.trim_start_matches(PARAMETER_PREFIX);
                let condition = format!("!({} in variables.parameters)", literal(parameter));
                conditions.push(("attributes".to_owned(), self.where_ours(condition)));
            }
        }
        for rule in &rules.attributes {
            conditions.extend(self.attribute(rule));
        }
        if !rules.packages.is_empty() {
            let allowed = fits("it", &rules.packages, literal);
            conditions
                .push(("packages".to_owned(), format!("variables.packages.all(it, {allowed})")));
        }
        for (field, attribute, names) in
            [("catalogs", "repository", &rules.catalogs), ("channels", "channel", &rules.channels)]
        {
            if !names.is_empty() {
                let given = format!("variables.action.?{attribute}.orValue('')");
                let condition = format!("{given} == '' || {}", fits(&given, names, literal));
                conditions.push((field.to_owned(), condition));
            }
        }
        self.leave(rules);
        let broken = conditions
            .into_iter()
            .map(|(rule, condition)| format!("({condition} ? [] : [{}])", literal(&rule)));
        let terms: Vec<String> = std::iter::once("dyn([])".to_owned()).chain(broken).collect();
        joined(&terms, "+")
    }

    /// Returns a condition that has to hold only of classes of ours.
    fn where_ours(&self, condition: String) -> String {
        let others: Vec<String> = self
            .classes
            .iter()
            .filter(|it| !it.is_ours())
            .map(|it| format!("variables.class in {}", names(it)))
            .collect();
        match others.is_empty() {
            true => condition,
            false => format!("{} || {condition}", any(others)),
        }
    }

    /// Notes the rules that are about more than the request.
    fn leave(&mut self, rules: &PolicyRules) {
        if rules.preconditions != ActionPreconditions::default() {
            self.left.push("preconditions".to_owned());
        }
        if rules.is_approval_required() {
            self.left.push("requiresApproval".to_owned());
        }
        if rules.max_active.is_some() {
            self.left.push("maxActive".to_owned());
        }
        if rules.max_operators.is_some() {
            self.left.push("maxOperators".to_owned());
        }
        for (field, names) in [
            ("packages", &rules.packages),
            ("catalogs", &rules.catalogs),
            ("channels", &rules.channels),
        ] {
            if !names.is_empty() {
                self.left.push(format!("{field} of the plan"));
            }
        }
    }

    /// Returns the parts of the rule of an attribute, each with the condition that has to hold.
    fn attribute(&mut self, rule: &AttributeRule) -> Vec<(String, String)> {
        let named = |part: &str| format!("attributes[{}].{part}", rule.name);
        if !rule.range.is_empty() {
            self.left.push(named("range"));
        }
        let given = self.given(&rule.name);
        let is_given = match rule.name.strip_prefix(PARAMETER_PREFIX) {
            Some(parameter) => format!("({} in variables.parameters)", literal(parameter)),
            None => format!("{given}.hasValue()"),
        };
        let mut conditions = Vec::new();
        if rule.required {
            conditions.push((named("required"), is_given.clone()));
        }
        if rule.forbidden {
            conditions.push((named("forbidden"), format!("!{is_given}")));
        }
        let is_compared = rule.fixed.is_some() || (!rule.values.is_empty() && !rule.forbidden);
        if is_compared && !self.is_scalar(&rule.name) {
            self.left.push(named(if rule.fixed.is_some() { "fixed" } else { "values" }));
            return conditions;
        }
        if let Some(fixed) = &rule.fixed {
            let fixed = expanded_literal(&text(fixed));
            conditions.push((named("fixed"), format!("{given}.orValue({fixed}) == {fixed}")));
        }
        if !rule.values.is_empty() && !rule.forbidden {
            let value = format!("{given}{}", self.defaults(rule));
            let allowed = fits("it", &rule.values, expanded_literal);
            conditions
                .push((named("values"), format!("{value}.optMap(it, {allowed}).orValue(false)")));
        }
        conditions
    }

    /// Returns the value that the request gives to an attribute, as an optional text.
    fn given(&self, name: &str) -> String {
        if let Some(parameter) = name.strip_prefix(PARAMETER_PREFIX) {
            return format!("variables.parameters[?{}].optMap(it, string(it))", literal(parameter));
        }
        if !ATTRIBUTES.contains(&name) {
            // No Action has it.
            return "optional.none()".to_owned();
        }
        if !FLAGS.contains(&name) {
            return format!(
                "(variables.action.?{name}.orValue('') == '' ? optional.none() \
                 : optional.of(dyn(variables.action.{name})))"
            );
        }
        let itself = format!("variables.action.?{name}.optMap(it, string(it))");
        let spelling = SPELLINGS.iter().find(|(_, attribute)| *attribute == name);
        let spelled: Vec<String> = self
            .classes
            .iter()
            .filter(|class| spelling.is_some_and(|(it, _)| is_spelled(class, it, name)))
            .map(|class| format!("variables.class in {}", names(class)))
            .collect();
        let Some((parameter, _)) = spelling.filter(|_| !spelled.is_empty()) else { return itself };
        let parameter = literal(parameter.trim_start_matches(PARAMETER_PREFIX));
        format!(
            "{itself}.or({} && variables.parameters[?{parameter}].orValue(false) == true \
             ? optional.of('false') : optional.none())",
            any(spelled)
        )
    }

    /// Returns the value of an attribute that is left out: that of the policy, else that of the class.
    fn defaults(&self, rule: &AttributeRule) -> String {
        if let Some(default) = rule.fixed.as_ref().or(rule.default.as_ref()) {
            return format!(".or(optional.of({}))", expanded_literal(&text(default)));
        }
        let defaults = self.classes.iter().filter_map(|class| {
            let value = class.spec.defaults.as_ref()?.get(&rule.name)?;
            let value = literal(&text(value));
            Some(format!(
                ".or(variables.class in {} ? optional.of({value}) : optional.none())",
                names(class)
            ))
        });
        defaults.collect()
    }

    /// Returns whether the values of an attribute are texts, whole numbers, or true and false.
    fn is_scalar(&self, name: &str) -> bool {
        let Some(parameter) = name.strip_prefix(PARAMETER_PREFIX) else { return true };
        self.classes.iter().all(|class| {
            let kind = class.spec.schema.as_ref().map(|it| &it["properties"][parameter]["type"]);
            kind.and_then(Value::as_str)
                .is_none_or(|it| ["string", "boolean", "integer"].contains(&it))
        })
    }
}

/// Returns whether the user is a subject.
fn subject(subject: &PolicySubject) -> String {
    let PolicySubject { kind, name, namespace } = subject;
    match kind {
        SubjectKind::User => format!("request.userInfo.username == {}", literal(name)),
        SubjectKind::Group => format!("{} in variables.groups", literal(name)),
        SubjectKind::ServiceAccount => {
            let user = format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}");
            format!("request.userInfo.username == {}", literal(&user))
        }
    }
}

/// Returns whether a requirement of labels holds of the namespace.
fn requirement(requirement: &LabelRequirement) -> String {
    let LabelRequirement { key, operator, values } = requirement;
    let (key, values) = (literal(key), json!(values));
    match operator {
        LabelOperator::In => {
            format!("({key} in variables.labels && variables.labels[{key}] in {values})")
        }
        LabelOperator::NotIn => {
            format!("!({key} in variables.labels && variables.labels[{key}] in {values})")
        }
        LabelOperator::Exists => format!("{key} in variables.labels"),
        LabelOperator::DoesNotExist => format!("!({key} in variables.labels)"),
    }
}

/// Returns whether a text fits one of the patterns, which may end in `*`.
fn fits(value: &str, patterns: &[String], literal: fn(&str) -> String) -> String {
    any(patterns.iter().map(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => format!("{value}.startsWith({})", literal(prefix)),
        None => format!("{value} == {}", literal(pattern)),
    }))
}

/// Joins terms with an operator, in pairs of pairs: API servers limit how deep expressions are nested.
fn joined(terms: &[String], operator: &str) -> String {
    match terms {
        [] => String::new(),
        [term] => term.clone(),
        terms => {
            let (before, after) = terms.split_at(terms.len() / 2);
            format!("({} {operator} {})", joined(before, operator), joined(after, operator))
        }
    }
}

/// Returns whether any of some conditions holds; false if there are none.
fn any(conditions: impl IntoIterator<Item = String>) -> String {
    let conditions: Vec<String> = conditions.into_iter().collect();
    match conditions.is_empty() {
        true => "false".to_owned(),
        false => format!("({})", joined(&conditions, "||")),
    }
}

/// Returns a text as a literal of CEL, which has the escapes of JSON.
fn literal(text: &str) -> String {
    json!(text).to_string()
}

/// The same, with the namespace of the request where the text refers to it.
fn expanded_literal(text: &str) -> String {
    let parts: Vec<String> = text.split(NAMESPACE_REFERENCE).map(literal).collect();
    match parts.len() {
        1 => literal(text),
        _ => format!("({})", parts.join(" + request.namespace + ")),
    }
}

#[cfg(test)]
mod tests;
