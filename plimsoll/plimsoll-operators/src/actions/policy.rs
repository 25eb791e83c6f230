//! Policies: whether an Action is granted, by which policy, and the reason if it is not.
//!
//! Policies grant permissions, as roles do: one policy whose rules all hold is enough. A user who may make
//! the same changes directly needs none.

use jiff::Timestamp;
use plimsoll_api::Reason;
use plimsoll_api::olm::action::{
    ActionRequester, ActionSpec, ChangeOperation, PlannedChange, PolicyDecision,
};
use plimsoll_api::olm::policy::{
    ActionPolicySpec, AttributeRule, PolicyRules, PolicySubject, SubjectKind,
};
use plimsoll_resolve::range::masterminds::Range;
use semver::Version;

use super::attributes::{EffectiveAction, NamedClass, requested, text};
use super::check::effective;
use super::plan::ActionPlan;
use super::planning::named;
use super::preconditions::violations;
use super::{ActionFailure, cut, enumerated, fits};

/// The prefix of the user names of service accounts.
const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
/// The maximum length of the message of a decision, in bytes: a status has one for each policy.
const MESSAGE_LENGTH_MAX: usize = 1024;
/// The attributes of our classes that reach beyond the Operators of a plan: a policy without a rule for one does
/// not grant it.
const GUARDED: [&str; 2] = ["parameters.namespace", "parameters.collisionProtection"];

/// A policy with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedPolicy {
    /// The name of the policy.
    pub name: String,
    /// The spec of the policy.
    pub spec: ActionPolicySpec,
}

/// An Action to judge by policies.
#[derive(Debug, Clone, Copy)]
pub struct PolicyRequest<'a> {
    /// The namespace of the Action.
    pub namespace: &'a str,
    /// The user who requests the Action.
    pub requester: &'a ActionRequester,
    /// The spec of the Action.
    pub spec: &'a ActionSpec,
    /// The class of the Action.
    pub class: &'a NamedClass,
    /// The number of other Actions in the namespace that have not ended.
    pub active: usize,
    /// Whether the requester may make the same changes directly; `None` if that is not known.
    pub may_directly: Option<bool>,
    /// The plan; `None` before there is one.
    pub plan: Option<&'a ActionPlan>,
    /// The current time.
    pub now: Timestamp,
}

/// The result of judging an Action.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyVerdict {
    /// The decisions of the policies that apply to it.
    pub decisions: Vec<PolicyDecision>,
    /// The grant, or the reason that there is none.
    pub granted: Result<Grant, ActionFailure>,
}

/// The permission to carry out an Action.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    /// The effective attributes.
    pub action: EffectiveAction,
    /// Whether the plan needs an approval.
    pub requires_approval: bool,
    /// Whether Operators must request the exact versions that were judged, instead of ranges.
    pub exact_versions: bool,
    /// Whether Operators must name the catalogs that were judged.
    pub exact_catalogs: bool,
}

impl PolicyVerdict {
    /// Returns the warnings for the requester.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let warned = self.decisions.iter().filter(|it| it.mode == "Warn" && !it.allowed);
        warned.map(|it| format!("ActionPolicy {}: {}", it.policy, it.message))
    }
}

/// Returns whether a policy applies to an Action.
pub fn is_about(policy: &ActionPolicySpec, request: &PolicyRequest<'_>) -> bool {
    let is_here = policy.namespaces.is_empty()
        || policy.namespaces.iter().any(|it| fits(it, request.namespace));
    is_here
        && policy.classes.iter().any(|it| request.class.goes_by(it))
        && policy.subjects.iter().any(|it| is_subject(it, request.requester))
}

fn is_subject(subject: &PolicySubject, requester: &ActionRequester) -> bool {
    match subject.kind {
        SubjectKind::User => subject.name == requester.username,
        SubjectKind::Group => requester.groups.contains(&subject.name),
        SubjectKind::ServiceAccount => {
            let account = requester.username.strip_prefix(SERVICE_ACCOUNT_PREFIX);
            account.and_then(|it| it.split_once(':'))
                == Some((subject.namespace.as_str(), subject.name.as_str()))
        }
    }
}

/// Judges an Action by all policies, in the order of their names.
pub fn judge(request: &PolicyRequest<'_>, policies: &[NamedPolicy]) -> PolicyVerdict {
    let mut decisions = Vec::new();
    let mut granted = None;
    let mut refused: Option<ActionFailure> = None;
    if request.may_directly == Some(true) {
        let action = effective(request.spec, request.class, None);
        decisions.push(PolicyDecision {
            policy: String::new(),
            mode: "Enforce".to_owned(),
            allowed: true,
            message: format!("{} may do the same by hand", request.requester.username),
        });
        granted = Some(action.map(|action| Grant {
            action,
            requires_approval: false,
            exact_versions: false,
            exact_catalogs: false,
        }));
    }
    for policy in policies.iter().filter(|it| is_about(&it.spec, request)) {
        let NamedPolicy { name, spec } = policy;
        if let Some(rules) = &spec.enforce {
            let checked = check(name, rules, request);
            decisions.push(decision(name, "Enforce", &checked));
            match checked {
                Ok(action) => {
                    granted.get_or_insert(Ok(Grant {
                        action,
                        requires_approval: rules.requires_approval,
                        exact_versions: rules.attributes.iter().any(|it| !it.range.is_empty()),
                        exact_catalogs: !rules.catalogs.is_empty(),
                    }));
                }
                Err(failures) => {
                    let first = failures.into_iter().next().map(|it| {
                        let message = format!("ActionPolicy {name}: {}", it.message);
                        ActionFailure::new(it.reason, message)
                    });
                    refused = refused.or(first);
                }
            }
        }
        for (mode, rules) in [("Warn", &spec.warn), ("Audit", &spec.audit)] {
            let checked = rules.as_ref().map(|rules| check(name, rules, request));
            decisions.extend(checked.map(|it| decision(name, mode, &it)));
        }
    }
    let granted = granted.unwrap_or_else(|| {
        // A defect of the request itself is the better explanation.
        effective(request.spec, request.class, None)?;
        Err(refused.unwrap_or_else(|| no_policy(request)))
    });
    PolicyVerdict { decisions, granted }
}

/// Returns the failure of an Action that no policy is about.
fn no_policy(request: &PolicyRequest<'_>) -> ActionFailure {
    let user = &request.requester.username;
    let by_hand = match request.may_directly {
        Some(_) => format!(", and {user} may not do the same by hand"),
        None => String::new(),
    };
    let (class, namespace) = (&request.class.name, request.namespace);
    ActionFailure::new(
        Reason::PolicyDenied,
        format!(
            "no ActionPolicy allows {user} an Action of class {class} in namespace \
             {namespace}{by_hand}"
        ),
    )
}

fn decision(
    policy: &str,
    mode: &str,
    checked: &Result<EffectiveAction, Vec<ActionFailure>>,
) -> PolicyDecision {
    let message = match checked {
        Ok(_) => "all rules hold".to_owned(),
        Err(failures) => {
            let messages: Vec<&str> = failures.iter().map(|it| it.message.as_str()).collect();
            cut(&messages.join("; "), MESSAGE_LENGTH_MAX)
        }
    };
    PolicyDecision {
        policy: policy.to_owned(),
        mode: mode.to_owned(),
        allowed: checked.is_ok(),
        message,
    }
}

/// Returns the effective attributes under the rules of a policy.
///
/// # Errors
///
/// A failure for each rule that does not hold.
fn check(
    policy: &str,
    rules: &PolicyRules,
    request: &PolicyRequest<'_>,
) -> Result<EffectiveAction, Vec<ActionFailure>> {
    let action = effective(request.spec, request.class, Some((policy, rules)));
    let action = action.map_err(|failure| vec![failure])?;
    let failures = broken(rules, &action, request);
    if failures.is_empty() { Ok(action) } else { Err(failures) }
}

/// Returns a failure for each rule that does not hold.
fn broken(
    rules: &PolicyRules,
    action: &EffectiveAction,
    request: &PolicyRequest<'_>,
) -> Vec<ActionFailure> {
    let denied = |message: String| ActionFailure::new(Reason::PolicyDenied, message);
    let mut found = Vec::new();
    let given = requested(request.spec, request.class);
    let guarded = GUARDED.iter().filter(|it| request.class.is_ours() && given.contains_key(**it));
    let mut unnamed = guarded.filter(|name| rules.attributes.iter().all(|it| it.name != **name));
    found.extend(
        unnamed.next().map(|it| denied(format!("it has no rule that grants attribute {it}"))),
    );
    for rule in &rules.attributes {
        found.extend(attribute(rule, given.contains_key(&rule.name), action, request).map(denied));
    }
    let planned: Vec<&str> = request.plan.iter().flat_map(|it| it.operators()).collect();
    let named = named(action);
    let packages = planned.into_iter().chain(named.iter().map(|it| it.name.as_str()));
    let allowed =
        |name: &str| rules.packages.is_empty() || rules.packages.iter().any(|it| fits(it, name));
    let mut others: Vec<&str> = packages.filter(|it| !allowed(it)).collect();
    others.dedup();
    if let Some(name) = others.first() {
        let allowed = enumerated(&rules.packages);
        found.push(denied(format!("package {name} is not among {allowed}")));
    }
    found.extend(catalog(&rules.catalogs, action, request).map(denied));
    if let Some(max) = rules.max_active
        && request.active >= usize::try_from(max).unwrap_or(usize::MAX)
    {
        found.push(denied(format!(
            "{} Actions of namespace {} have not ended, at most {max} may at a time",
            request.active, request.namespace
        )));
    }
    if let Some(plan) = request.plan {
        found.extend(violations(plan, &rules.preconditions, request.now));
    }
    found
}

/// Returns the reason that a plan uses a catalog that is not allowed; `None` if it does not.
fn catalog(
    catalogs: &[String],
    action: &EffectiveAction,
    request: &PolicyRequest<'_>,
) -> Option<String> {
    let is_other = |name: &str| !catalogs.iter().any(|it| fits(it, name));
    if catalogs.is_empty() {
        return None;
    }
    let allowed = enumerated(catalogs);
    let named = action.text("repository");
    if !named.is_empty() && is_other(named) {
        return Some(format!("catalog {named} is not among {allowed}"));
    }
    let is_installed =
        |it: &&PlannedChange| !it.is_release() && it.operation != ChangeOperation::Delete;
    let mut installed = request.plan.iter().flat_map(|it| &it.changes).filter(is_installed);
    let change = installed.find(|it| is_other(&it.catalog))?;
    let PlannedChange { operator, catalog, .. } = change;
    Some(match catalog.as_str() {
        "" => format!("which catalog has {operator} is not known, allowed: {allowed}"),
        catalog => format!("{operator} is of catalog {catalog}, which is not among {allowed}"),
    })
}

/// Returns the reason that the rule of an attribute does not hold; `None` if it holds.
fn attribute(
    rule: &AttributeRule,
    is_given: bool,
    action: &EffectiveAction,
    request: &PolicyRequest<'_>,
) -> Option<String> {
    let name = &rule.name;
    if rule.required && !is_given {
        return Some(format!("attribute {name} is required"));
    }
    if rule.forbidden && is_given {
        return Some(format!("attribute {name} is forbidden"));
    }
    let value = action.get(name).map(text);
    let is_allowed = |value: &String| rule.values.iter().any(|it| fits(it, value));
    if !rule.values.is_empty() && !rule.forbidden && !value.as_ref().is_some_and(is_allowed) {
        let allowed = enumerated(&rule.values);
        return Some(match value {
            Some(value) => format!("attribute {name} is {value}, allowed: {allowed}"),
            None => format!("attribute {name} is required, allowed: {allowed}"),
        });
    }
    if rule.range.is_empty() {
        return None;
    }
    let range = match Range::parse(&rule.range) {
        Ok(range) => range,
        Err(error) => return Some(format!("its range `{}` is no range: {error}", rule.range)),
    };
    let outside =
        |version: &str| Version::parse(version).is_ok_and(|version| !range.matches(&version));
    let is_denied = |it: &&PlannedChange| match it.operation {
        ChangeOperation::Delete => false,
        ChangeOperation::Create | ChangeOperation::Update => {
            it.version.is_empty() || outside(&it.version)
        }
        _ => outside(&it.version),
    };
    if let Some(change) = request.plan.and_then(|plan| plan.changes.iter().find(is_denied)) {
        return Some(match (change.subject(), change.version.as_str()) {
            (subject, "") => {
                format!(
                    "which version of {subject} is installed is not known, allowed: {}",
                    rule.range
                )
            }
            (subject, version) => format!("{subject} v{version} is not in range {}", rule.range),
        });
    }
    let value = value.filter(|it| outside(it.trim_start_matches('v')))?;
    Some(format!("attribute {name} is {value}, which is not in range {}", rule.range))
}

#[cfg(test)]
mod tests;
