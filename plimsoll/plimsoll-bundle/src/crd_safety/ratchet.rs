//! Differences between served versions that were there before.
//!
//! Upstream compares the texts of its errors. Those of a relaxed bound differ, and those of two
//! required fields have their order by chance; here a difference is reported if it grew.
//!
//! Upstream: sigs.k8s.io/crdify/pkg/validators/version/served/served.go: subtractExistingIssues

use serde_json::{Value, json};

use super::compare::Finding;
use super::{UpgradeRule, UpstreamVerdict};

/// What becomes of a difference between served versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ratcheted {
    /// It is reported.
    Reported,
    /// It is not, neither here nor upstream.
    Silent,
    /// It is not, but upstream reports it.
    Excused(UpstreamVerdict),
}

/// Judges a difference by those that the definition had before.
pub(super) fn judge(finding: &Finding, known: &[Finding]) -> Ratcheted {
    let Some(before) =
        known.iter().find(|known| known.path == finding.path && known.rule == finding.rule)
    else {
        return Ratcheted::Reported;
    };
    let upstream = if shown(before) != shown(finding) {
        UpstreamVerdict::Refused
    } else if finding.rule == UpgradeRule::Required && length(&finding.new) > 1 {
        UpstreamVerdict::Random
    } else {
        return Ratcheted::Silent;
    };
    if grew(before, finding) { Ratcheted::Reported } else { Ratcheted::Excused(upstream) }
}

/// What upstream's text depends on.
fn shown(finding: &Finding) -> Value {
    let Finding { rule, old, new, .. } = finding;
    match rule {
        UpgradeRule::Nullable | UpgradeRule::Pattern | UpgradeRule::Type => json!([old, new]),
        _ if old.is_null() => json!([new]),
        _ => json!([old, new]),
    }
}

fn grew(before: &Finding, now: &Finding) -> bool {
    let number = |value: &Value, otherwise: f64| value.as_f64().unwrap_or(otherwise);
    match now.rule {
        UpgradeRule::Required => !covers(&before.new, &now.new),
        // A list of values that came up, or values that went.
        UpgradeRule::Enum if now.old.is_null() && before.old.is_null() => {
            !covers(&now.new, &before.new)
        }
        UpgradeRule::Enum => before.old.is_null() || !covers(&before.old, &now.old),
        UpgradeRule::Maximum
        | UpgradeRule::MaxItems
        | UpgradeRule::MaxLength
        | UpgradeRule::MaxProperties => {
            let none = f64::INFINITY;
            number(&now.new, none) < number(&before.new, none)
                || number(&now.old, none) > number(&before.old, none)
        }
        UpgradeRule::Minimum
        | UpgradeRule::MinItems
        | UpgradeRule::MinLength
        | UpgradeRule::MinProperties => {
            let none = f64::NEG_INFINITY;
            number(&now.new, none) > number(&before.new, none)
                || number(&now.old, none) < number(&before.old, none)
        }
        UpgradeRule::Unhandled => now.harmful.iter().any(|field| {
            (before.old.get(field), before.new.get(field))
                != (now.old.get(field), now.new.get(field))
        }),
        UpgradeRule::Scope
        | UpgradeRule::StoredVersionRemoval
        | UpgradeRule::ExistingFieldRemoval
        | UpgradeRule::Schema
        | UpgradeRule::Default
        | UpgradeRule::Nullable
        | UpgradeRule::OneOf
        | UpgradeRule::Pattern
        | UpgradeRule::Type => shown(before) != shown(now),
    }
}

fn covers(all: &Value, some: &Value) -> bool {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let all = list(all);
    list(some).iter().all(|value| all.contains(value))
}

fn length(value: &Value) -> usize {
    value.as_array().map_or(0, Vec::len)
}
