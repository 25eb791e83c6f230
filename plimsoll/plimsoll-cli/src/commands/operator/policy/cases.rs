//! Tables of cases for `plimsoll operator policy test --cases`: requests with the decisions that are expected.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, anyhow, bail};
use plimsoll_api::Reason;
use plimsoll_api::olm::action::ActionSpec;
use plimsoll_operators::actions::files::action_spec;
use plimsoll_operators::actions::policy::PolicyVerdict;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Policies, authenticated};

/// A file with cases.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    cases: Vec<Case>,
}

/// A request, and what has to be decided on it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    /// What is tested, in a line.
    name: String,
    /// The user who requests it.
    #[serde(rename = "as")]
    user: String,
    /// Groups of the user.
    #[serde(default, rename = "asGroups")]
    groups: Vec<String>,
    /// The namespace; that of the command line without it.
    namespace: Option<String>,
    /// The spec of the Action.
    action: Value,
    /// The decision.
    decision: ExpectedDecision,
    /// The policy that denies it; any without it.
    policy: Option<String>,
    /// The rule that does not hold, as decisions name it; any without it.
    rule: Option<String>,
}

/// A decision that is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
enum ExpectedDecision {
    /// It is granted, and its plan needs no approval.
    Allowed,
    /// It is granted, once its plan is approved.
    ApprovalRequired,
    /// It is not granted.
    Denied,
}

impl fmt::Display for ExpectedDecision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Allowed => "Allowed",
            Self::ApprovalRequired => "ApprovalRequired",
            Self::Denied => "Denied",
        })
    }
}

/// The result of a case.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CaseResult {
    /// What is tested.
    pub(super) name: String,
    /// Whether the decision is the one that is expected.
    pub(super) passed: bool,
    /// The decision, with the policy and the rule that deny it.
    pub(super) decision: String,
    /// What was expected instead; empty if it passed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) expected: String,
}

/// Judges the cases of a file.
///
/// # Errors
///
/// When the file cannot be read, has no cases, or one names a class that does not exist.
pub(super) fn run(path: &Path, policies: &Policies) -> Result<Vec<CaseResult>, anyhow::Error> {
    let context = || format!("failed to read `{}`", path.display());
    let text = fs::read_to_string(path).with_context(context)?;
    let read: CaseFile =
        serde_saphyr::from_str(&text).map_err(|error| anyhow!("{}: {error}", path.display()))?;
    if read.cases.is_empty() {
        bail!("{}: it has no cases", path.display());
    }
    let result = |case: &Case| {
        case.result(policies).with_context(|| format!("{}: case `{}`", path.display(), case.name))
    };
    read.cases.iter().map(result).collect()
}

impl Case {
    fn spec(&self) -> Result<ActionSpec, anyhow::Error> {
        action_spec(&self.action).map_err(|errors| {
            // They name the field of an object, of which this is the spec.
            let named = errors.iter().map(|it| match it.strip_prefix("spec") {
                Some(rest) => format!("action{rest}"),
                None => it.clone(),
            });
            anyhow!("{}", named.collect::<Vec<_>>().join("; "))
        })
    }

    fn result(&self, policies: &Policies) -> Result<CaseResult, anyhow::Error> {
        let requester = authenticated(&self.user, &self.groups);
        let namespace = self.namespace.as_deref().unwrap_or(&policies.namespace);
        let PolicyVerdict { decisions, granted } =
            policies.judge(&requester, namespace, &self.spec()?)?;
        if self.decision != ExpectedDecision::Denied
            && (self.policy.is_some() || self.rule.is_some())
        {
            bail!("policy and rule are of a decision Denied: leave them out, or write that one");
        }
        let decision = match &granted {
            // It would be refused whatever policies say.
            Err(failure) if failure.reason == Reason::InvalidAction => bail!("{}", failure.message),
            Err(_) => ExpectedDecision::Denied,
            Ok(grant) if grant.approval.is_some() => ExpectedDecision::ApprovalRequired,
            Ok(_) => ExpectedDecision::Allowed,
        };
        let mut denials = decisions.iter().filter(|it| it.mode == "Enforce" && !it.allowed);
        let is_denied = decision == ExpectedDecision::Denied;
        let is_expected = |policy: &str, rule: &str| {
            self.policy.as_deref().is_none_or(|it| it == policy)
                && self.rule.as_deref().is_none_or(|it| it == rule)
        };
        let is_unconditional = self.policy.is_none() && self.rule.is_none();
        let passed = decision == self.decision
            && (is_unconditional
                || (is_denied && denials.clone().any(|it| is_expected(&it.policy, &it.rule))));
        let shown = match denials.next().filter(|_| is_denied) {
            Some(it) => with_rule(decision, Some(&it.policy), Some(&it.rule)),
            None => decision.to_string(),
        };
        let expected = match passed {
            true => String::new(),
            false => with_rule(self.decision, self.policy.as_deref(), self.rule.as_deref()),
        };
        Ok(CaseResult { name: self.name.clone(), passed, decision: shown, expected })
    }
}

/// Returns a decision with what makes it, such as `Denied by dev: packages`.
fn with_rule(decision: ExpectedDecision, policy: Option<&str>, rule: Option<&str>) -> String {
    let rule = rule.filter(|it| !it.is_empty());
    match (policy, rule) {
        (None, None) => decision.to_string(),
        (Some(policy), None) => format!("{decision} by {policy}"),
        (None, Some(rule)) => format!("{decision} by {rule}"),
        (Some(policy), Some(rule)) => format!("{decision} by {policy}: {rule}"),
    }
}
