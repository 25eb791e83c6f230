//! Policies: whether an Action is granted, by which policy, and the reason if it is not.
//!
//! Policies grant permissions, as roles do: one policy whose rules all hold is enough. A user who may make
//! the same changes directly needs none.

pub mod compilation;
pub mod explanation;
pub mod problems;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use plimsoll_api::Reason;
use plimsoll_api::olm::action::{
    ActionPreconditions, ActionRequester, ActionSpec, ChangeOperation, EffectiveAttribute,
    PlannedChange, PolicyDecision,
};
use plimsoll_api::olm::policy::{ActionPolicySpec, AttributeRule, PolicyRules};
use plimsoll_plan::windows::MaintenanceWindows;
use plimsoll_resolve::range::masterminds::Range;
use semver::Version;
use serde_json::Value;

use super::approvals::{ApprovalRule, ApprovalState};
use super::attributes::{EffectiveAction, NamedClass, requested, text};
use super::check::effective;
use super::plan::{ActionPlan, Exactness};
use super::planning::named;
use super::preconditions::violations;
use super::subjects::is_subject;
use super::{ActionFailure, cut, enumerated, fits};
use crate::deletion_plan::counted;

/// The maximum length of the message of a decision, in bytes: a status has one for each policy.
const MESSAGE_LENGTH_MAX: usize = 1024;
/// The attributes of our classes that reach beyond the Operators of a plan: a policy without a rule for one does
/// not grant it.
const GUARDED: [&str; 2] = ["parameters.namespace", "parameters.collisionProtection"];
/// The mode of the rules that grant.
const ENFORCE: &str = "Enforce";
/// What stands for the namespace of the Action in values of attributes.
const NAMESPACE_REFERENCE: &str = "$(namespace)";

/// The Operators of a namespace whose Actions have created none.
static NOTHING_CREATED: BTreeSet<String> = BTreeSet::new();

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
    /// The labels of the namespace; without a cluster those that are known of it.
    pub labels: &'a BTreeMap<String, String>,
    /// The user who requests the Action.
    pub requester: &'a ActionRequester,
    /// The spec of the Action.
    pub spec: &'a ActionSpec,
    /// The class of the Action.
    pub class: &'a NamedClass,
    /// The number of other Actions in the namespace that have not ended.
    pub active: usize,
    /// The Operators that Actions of the namespace have created, or are about to; empty if they are not known.
    pub created: &'a BTreeSet<String>,
    /// Whether the requester may make the same changes directly; `None` if that is not known.
    pub may_directly: Option<bool>,
    /// The plan; `None` before there is one.
    pub plan: Option<&'a ActionPlan>,
    /// The attributes that the plan was made with, as statuses list them; empty before there is one.
    pub planned: &'a [EffectiveAttribute],
    /// The digest of the plan as it was reported; `None` if it was not, and each policy may ask for another one.
    pub digest: Option<&'a str>,
    /// The MaintenanceWindows that the Action and the policies name.
    pub windows: &'a MaintenanceWindows,
    /// The current time.
    pub now: Timestamp,
}

impl<'a> PolicyRequest<'a> {
    /// Returns a request that is not planned, the only one of a namespace of which nothing else is known.
    pub fn unplanned(
        namespace: &'a str,
        labels: &'a BTreeMap<String, String>,
        requester: &'a ActionRequester,
        spec: &'a ActionSpec,
        class: &'a NamedClass,
        windows: &'a MaintenanceWindows,
    ) -> Self {
        Self {
            namespace,
            labels,
            requester,
            spec,
            class,
            active: 0,
            created: &NOTHING_CREATED,
            may_directly: None,
            plan: None,
            planned: &[],
            digest: None,
            windows,
            // Preconditions are about a plan.
            now: Timestamp::UNIX_EPOCH,
        }
    }
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
    /// The approvals that the plan needs; `None` if it needs none.
    pub approval: Option<ApprovalRule>,
    /// What of the plan the Operators must request exactly as it was judged.
    pub exact: Exactness,
}

impl Grant {
    /// Returns what a policy grants.
    fn of(action: EffectiveAction, rules: &PolicyRules, request: &PolicyRequest<'_>) -> Self {
        let has_range = rules.attributes.iter().any(|it| !it.range.is_empty());
        let no_new = rules.preconditions.no_new_cluster_permissions;
        let exact = Exactness {
            // What follows a range gets the permissions of later versions without another plan, and another catalog may
            // have another bundle of the same version.
            versions: has_range || no_new,
            catalogs: !rules.catalogs.is_empty() || no_new,
            channels: !rules.channels.is_empty(),
            content: no_new || request.spec.preconditions.no_new_cluster_permissions,
        };
        Self { action, approval: ApprovalRule::of(rules), exact }
    }

    /// Returns whether the plan was made with the attributes that are granted.
    pub(super) fn is_planned(&self, planned: &[EffectiveAttribute]) -> bool {
        let listed = self.action.listed();
        let values = |of: &[EffectiveAttribute]| -> Vec<(String, String)> {
            of.iter().map(|it| (it.name.clone(), it.value.clone())).collect()
        };
        values(&listed) == values(planned)
    }

    /// Returns whether the plan needs no approval any more. Those that are given are of a plan with these
    /// attributes. A plan that was reported has to be as this policy grants it.
    fn is_approved(&self, request: &PolicyRequest<'_>) -> bool {
        if request.digest.is_some()
            && let Some(plan) = request.plan
            && !(self.is_planned(request.planned) && plan.is_exact(self.exact))
        {
            return false;
        }
        let Some(rule) = &self.approval else { return true };
        if request.spec.approvals.is_empty() || !self.is_planned(request.planned) {
            return false;
        }
        let digest = request.digest.map(str::to_owned).or_else(|| {
            let mut plan = request.plan?.clone();
            plan.grant(self.exact);
            Some(plan.digest())
        });
        digest.is_some_and(|it| rule.state(request.spec, &it) == ApprovalState::Approved)
    }
}

/// A rule that does not hold.
#[derive(Debug)]
struct BrokenRule {
    /// The field of the policy; empty if the request is wrong itself.
    rule: String,
    failure: ActionFailure,
}

impl PolicyVerdict {
    /// Returns the warnings for the requester.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let warned = self.decisions.iter().filter(|it| it.mode == "Warn" && !it.allowed);
        warned.map(|it| {
            let rule = if it.rule.is_empty() { String::new() } else { format!(" ({})", it.rule) };
            format!("ActionPolicy {}: {}{rule}", it.policy, it.message)
        })
    }
}

/// Returns whether a policy applies to an Action.
pub fn is_about(policy: &ActionPolicySpec, request: &PolicyRequest<'_>) -> bool {
    policy.classes.iter().any(|it| request.class.goes_by(it))
        && policy.subjects.iter().any(|it| is_subject(it, request.requester))
        && (policy.namespaces.is_empty()
            || policy.namespaces.iter().any(|it| fits(it, request.namespace)))
        && policy.namespace_selector.as_ref().is_none_or(|it| it.matches(request.labels))
}

/// Judges an Action by all policies, in the order of their names. Of several that grant it, the first one counts
/// that asks for no approval, or whose approvals of this plan are given; else the first of all.
pub fn judge(request: &PolicyRequest<'_>, policies: &[NamedPolicy]) -> PolicyVerdict {
    let mut decisions = Vec::new();
    let mut granted = None;
    let mut is_approved = false;
    let mut refused: Vec<ActionFailure> = Vec::new();
    if request.may_directly == Some(true) {
        let action = effective(request.spec, request.class, None);
        decisions.push(PolicyDecision {
            mode: ENFORCE.to_owned(),
            allowed: true,
            message: format!("{} may do the same by hand", request.requester.username),
            ..PolicyDecision::default()
        });
        granted = Some(action.map(|action| Grant {
            action,
            approval: None,
            exact: Exactness {
                content: request.spec.preconditions.no_new_cluster_permissions,
                ..Exactness::default()
            },
        }));
        is_approved = true;
    }
    for policy in policies.iter().filter(|it| is_about(&it.spec, request)) {
        let NamedPolicy { name, spec } = policy;
        if let Some(rules) = &spec.enforce {
            let checked = check(name, ENFORCE, rules, request);
            decisions.push(decision(name, ENFORCE, &checked));
            match checked {
                Ok(action) if !is_approved => {
                    let grant = Grant::of(action, rules, request);
                    is_approved = grant.is_approved(request);
                    if is_approved || granted.is_none() {
                        granted = Some(Ok(grant));
                    }
                }
                Ok(_) => {}
                Err(broken) => {
                    refused.extend(refusal(name, &broken));
                }
            }
        }
        for (mode, rules) in [("Warn", &spec.warn), ("Audit", &spec.audit)] {
            let checked = rules.as_ref().map(|rules| check(name, mode, rules, request));
            decisions.extend(checked.map(|it| decision(name, mode, &it)));
        }
    }
    let granted = granted.unwrap_or_else(|| {
        // A defect of the request itself is the better explanation.
        effective(request.spec, request.class, None)?;
        Err(joined(refused).unwrap_or_else(|| no_policy(request)))
    });
    PolicyVerdict { decisions, granted }
}

/// Returns the failure of an Action that a policy does not grant: the rules that do not hold, each with its field.
fn refusal(policy: &str, broken: &[BrokenRule]) -> Option<ActionFailure> {
    let texts = broken.iter().map(|BrokenRule { rule, failure }| match rule.as_str() {
        // The message about a precondition begins with its name.
        rule if rule.is_empty() || failure.precondition.is_some() => failure.message.clone(),
        rule => format!("{} ({rule})", failure.message),
    });
    let texts: Vec<String> = texts.collect();
    let message = format!("ActionPolicy {policy}: {}", texts.join("; "));
    let reason = broken.first()?.failure.reason;
    Some(ActionFailure::new(reason, cut(&message, MESSAGE_LENGTH_MAX)))
}

/// Returns the first of some refusals, with the messages of all: any of the policies could have granted it.
fn joined(refusals: Vec<ActionFailure>) -> Option<ActionFailure> {
    let mut refusals = refusals.into_iter();
    let mut first = refusals.next()?;
    let others: Vec<String> = refusals.map(|it| it.message).collect();
    if !others.is_empty() {
        let message = format!("{}; {}", first.message, others.join("; "));
        first.message = cut(&message, MESSAGE_LENGTH_MAX);
    }
    Some(first)
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
    checked: &Result<EffectiveAction, Vec<BrokenRule>>,
) -> PolicyDecision {
    let (rule, message) = match checked {
        Ok(_) => (String::new(), "all rules hold".to_owned()),
        Err(broken) => {
            let messages: Vec<&str> = broken.iter().map(|it| it.failure.message.as_str()).collect();
            let rule = broken.first().map(|it| it.rule.clone()).unwrap_or_default();
            (rule, cut(&messages.join("; "), MESSAGE_LENGTH_MAX))
        }
    };
    PolicyDecision {
        policy: policy.to_owned(),
        mode: mode.to_owned(),
        allowed: checked.is_ok(),
        rule,
        message,
    }
}

/// Returns the effective attributes under the rules of a policy.
///
/// # Errors
///
/// The rules that do not hold.
fn check(
    policy: &str,
    mode: &str,
    rules: &PolicyRules,
    request: &PolicyRequest<'_>,
) -> Result<EffectiveAction, Vec<BrokenRule>> {
    let rules = &*expanded(rules, request.namespace);
    // Another controller does not see what policies set.
    let sets = request.class.is_ours().then_some((policy, rules));
    let action = effective(request.spec, request.class, sets);
    let action = action.map_err(|failure| vec![BrokenRule { rule: String::new(), failure }])?;
    let mut broken = broken(rules, &action, request);
    if mode == ENFORCE {
        broken.splice(..0, ungranted(rules, request));
        broken.extend(unkept(rules, &action, request));
    }
    if broken.is_empty() { Ok(action) } else { Err(broken) }
}

/// Returns the rules with the namespace of the Action in the values of attributes that refer to it.
fn expanded<'r>(rules: &'r PolicyRules, namespace: &str) -> Cow<'r, PolicyRules> {
    let refers = |value: &Option<Value>| {
        value.as_ref().and_then(Value::as_str).is_some_and(|it| it.contains(NAMESPACE_REFERENCE))
    };
    let is_affected = |it: &AttributeRule| {
        refers(&it.default)
            || refers(&it.fixed)
            || it.values.iter().any(|it| it.contains(NAMESPACE_REFERENCE))
    };
    if !rules.attributes.iter().any(is_affected) {
        return Cow::Borrowed(rules);
    }
    let mut rules = rules.clone();
    let replace = |text: &mut String| *text = text.replace(NAMESPACE_REFERENCE, namespace);
    for rule in &mut rules.attributes {
        for value in [&mut rule.default, &mut rule.fixed] {
            if let Some(Value::String(text)) = value {
                replace(text);
            }
        }
        rule.values.iter_mut().for_each(replace);
    }
    Cow::Owned(rules)
}

/// Returns the absence of a rule for an attribute that is only granted by one; `None` if there is none. Rules that only
/// report grant nothing.
fn ungranted(rules: &PolicyRules, request: &PolicyRequest<'_>) -> Option<BrokenRule> {
    let given = requested(request.spec, request.class);
    let guarded = GUARDED.iter().filter(|it| request.class.is_ours() && given.contains_key(**it));
    let mut unnamed = guarded.filter(|name| rules.attributes.iter().all(|it| it.name != **name));
    unnamed.next().map(|it| {
        let message = format!("it has no rule that grants attribute {it}");
        let failure = ActionFailure::new(Reason::PolicyDenied, message);
        BrokenRule { rule: "attributes".to_owned(), failure }
    })
}

/// Returns the rules of a policy that an Action of another controller's class cannot keep: it has no plan that could be
/// judged or approved, and no attributes but those that it gives and the defaults of its class.
fn unkept(
    rules: &PolicyRules,
    action: &EffectiveAction,
    request: &PolicyRequest<'_>,
) -> Vec<BrokenRule> {
    if request.class.is_ours() {
        return Vec::new();
    }
    let class = &request.class.name;
    let denied = |rule: String, message: String| BrokenRule {
        rule,
        failure: ActionFailure::new(Reason::PolicyDenied, message),
    };
    let of_plan = [
        ("preconditions", rules.preconditions != ActionPreconditions::default()),
        ("requiresApproval", rules.is_approval_required()),
        ("maxOperators", rules.max_operators.is_some()),
    ];
    let of_plan = of_plan.into_iter().filter(|(_, is_set)| *is_set).map(|(rule, _)| {
        let message = format!(
            "it has a rule about a plan, and class {class} is of another controller, which shows none before it acts"
        );
        denied(rule.to_owned(), message)
    });
    let set = rules.attributes.iter().filter_map(|it| {
        let (part, value) = match (&it.fixed, &it.default) {
            (Some(value), _) => ("fixed", value),
            (None, Some(value)) => ("default", value),
            (None, None) => return None,
        };
        let is_missing = action.get(&it.name).is_none() && request.class.has(&it.name);
        let message = || {
            format!(
                "attribute {} is required: class {class} is of another controller, for which policies set nothing; \
                 write {}",
                it.name,
                text(value)
            )
        };
        is_missing.then(|| denied(format!("attributes[{}].{part}", it.name), message()))
    });
    of_plan.chain(set).collect()
}

/// Returns the rules that do not hold.
fn broken(
    rules: &PolicyRules,
    action: &EffectiveAction,
    request: &PolicyRequest<'_>,
) -> Vec<BrokenRule> {
    let denied = |rule: String, message: String| BrokenRule {
        rule,
        failure: ActionFailure::new(Reason::PolicyDenied, message),
    };
    let mut found = Vec::new();
    let given = requested(request.spec, request.class);
    for rule in &rules.attributes {
        if let Some((part, message)) =
            attribute(rule, given.contains_key(&rule.name), action, request)
        {
            found.push(denied(format!("attributes[{}].{part}", rule.name), message));
        }
    }
    let of_field = |field: &str, message: Option<String>| {
        message.map(|message| denied(field.to_owned(), message))
    };
    found.extend(of_field("packages", package(&rules.packages, action, request)));
    found.extend(of_field("catalogs", catalog(&rules.catalogs, action, request)));
    found.extend(of_field("channels", channel(&rules.channels, action, request)));
    if let Some(max) = rules.max_active
        && request.active >= usize::try_from(max).unwrap_or(usize::MAX)
    {
        let message = format!(
            "{} Actions of namespace {} have not ended, at most {max} may at a time",
            request.active, request.namespace
        );
        found.push(denied("maxActive".to_owned(), message));
    }
    found.extend(of_field("maxOperators", beyond_quota(rules.max_operators, request)));
    if let Some(plan) = request.plan {
        let violations =
            violations(plan, &rules.preconditions, request.windows, request.now).into_iter();
        found.extend(violations.map(|failure| BrokenRule {
            rule: format!("preconditions.{}", failure.precondition.unwrap_or_default()),
            failure,
        }));
    }
    found
}

/// Returns the reason that a plan creates more Operators than a namespace may have; `None` if it does not.
fn beyond_quota(max: Option<u32>, request: &PolicyRequest<'_>) -> Option<String> {
    let max = usize::try_from(max?).unwrap_or(usize::MAX);
    let changes = request.plan.into_iter().flat_map(|it| &it.changes);
    let new = changes.filter(|it| {
        it.operation == ChangeOperation::Create && !request.created.contains(&it.operator)
    });
    let (new, there) = (new.count(), request.created.len());
    (new > 0 && there + new > max).then(|| {
        format!(
            "Actions of namespace {} have created {}, this one creates {new}, at most {max} may be there",
            request.namespace,
            counted(there, "Operator", "Operators")
        )
    })
}

/// Returns the reason that an Action or its plan is about a package that is not allowed; `None` if it is not.
fn package(
    packages: &[String],
    action: &EffectiveAction,
    request: &PolicyRequest<'_>,
) -> Option<String> {
    if packages.is_empty() {
        return None;
    }
    let is_other = |name: &&str| !packages.iter().any(|it| fits(it, name));
    let planned = request.plan.iter().flat_map(|it| it.operators()).find(is_other);
    let name = planned.map(str::to_owned).or_else(|| {
        let named = named(action);
        named.iter().map(|it| it.name.as_str()).find(is_other).map(str::to_owned)
    })?;
    Some(format!("package {name} is not among {}", enumerated(packages)))
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
    let allowed = || enumerated(catalogs);
    let named = action.text("repository");
    if !named.is_empty() && is_other(named) {
        return Some(format!("catalog {named} is not among {}", allowed()));
    }
    let change = installed(request).find(|it| is_other(&it.catalog))?;
    let PlannedChange { operator, catalog, .. } = change;
    Some(match catalog.as_str() {
        "" => format!("which catalog has {operator} is not known, allowed: {}", allowed()),
        catalog => format!("{operator} is of catalog {catalog}, which is not among {}", allowed()),
    })
}

/// Returns the reason that a plan uses a channel that is not allowed; `None` if it does not.
fn channel(
    channels: &[String],
    action: &EffectiveAction,
    request: &PolicyRequest<'_>,
) -> Option<String> {
    let is_other = |name: &str| !channels.iter().any(|it| fits(it, name));
    if channels.is_empty() {
        return None;
    }
    let allowed = || enumerated(channels);
    let named = action.text("channel");
    if !named.is_empty() && is_other(named) {
        return Some(format!("channel {named} is not among {}", allowed()));
    }
    let change = installed(request).find(|it| is_other(&it.channel))?;
    let PlannedChange { operator, channel, .. } = change;
    Some(match channel.as_str() {
        "" => format!("{operator} is of no channel, allowed: {}", allowed()),
        channel => format!("{operator} is of channel {channel}, which is not among {}", allowed()),
    })
}

/// Returns the changes of the plan that install something.
fn installed<'a>(request: &PolicyRequest<'a>) -> impl Iterator<Item = &'a PlannedChange> {
    let plan = request.plan.into_iter().flat_map(|it| &it.changes);
    plan.filter(|it| !it.is_release() && it.operation != ChangeOperation::Delete)
}

/// Returns the part of the rule of an attribute that does not hold, and the reason; `None` if it holds.
fn attribute(
    rule: &AttributeRule,
    is_given: bool,
    action: &EffectiveAction,
    request: &PolicyRequest<'_>,
) -> Option<(&'static str, String)> {
    let name = &rule.name;
    if rule.required && !is_given {
        return Some(("required", format!("attribute {name} is required")));
    }
    if rule.forbidden && is_given {
        return Some(("forbidden", format!("attribute {name} is forbidden")));
    }
    let value = action.get(name).map(text);
    if let Some(fixed) = rule.fixed.as_ref().map(text)
        && let Some(value) = value.as_ref().filter(|it| **it != fixed)
    {
        return Some(("fixed", format!("attribute {name} is {value}, and has to be {fixed}")));
    }
    let is_allowed = |value: &String| rule.values.iter().any(|it| fits(it, value));
    if !rule.values.is_empty() && !rule.forbidden && !value.as_ref().is_some_and(is_allowed) {
        let allowed = enumerated(&rule.values);
        let message = match value {
            Some(value) => format!("attribute {name} is {value}, allowed: {allowed}"),
            None => format!("attribute {name} is required, allowed: {allowed}"),
        };
        return Some(("values", message));
    }
    if rule.range.is_empty() {
        return None;
    }
    outside_range(rule, value, request).map(|message| ("range", message))
}

/// Returns the reason that a version is not in the range of a rule; `None` if all are. `value` is that of the
/// attribute.
fn outside_range(
    rule: &AttributeRule,
    value: Option<String>,
    request: &PolicyRequest<'_>,
) -> Option<String> {
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
    Some(format!("attribute {} is {value}, which is not in range {}", rule.name, rule.range))
}

#[cfg(test)]
mod tests;
