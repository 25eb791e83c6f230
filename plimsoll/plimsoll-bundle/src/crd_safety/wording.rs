//! What is said of a problem: what changes, and what to do.

use serde_json::Value;

use super::compare::Finding;
use super::{ComparisonScope, UpgradeRule};

pub(super) fn scope(old: &str, new: &str) -> String {
    format!(
        "the scope changes from {old} to {new}, which no API server accepts: keep it, or define \
         another kind"
    )
}

pub(super) fn stored_versions(removed: &[&str]) -> String {
    format!(
        "there may be objects stored in {}, which the new definition lacks: keep the version, \
         migrate the objects, and remove it when status.storedVersions does not name it any more",
        removed.join(", ")
    )
}

pub(super) fn removed_field(version: &str, path: &str) -> String {
    format!(
        "{version}: {path} is removed, and lost in objects that have it: keep it, or remove it in \
         a new version with a conversion webhook"
    )
}

pub(super) fn schema(had_one: bool) -> &'static str {
    if had_one {
        "the version loses its schema, which apiextensions.k8s.io/v1 requires: keep it"
    } else {
        "the version had no schema, so objects may be of any form: let the schema preserve unknown \
         fields and require nothing"
    }
}

/// What a finding says. Between served versions `old` is the older one, and not a former state.
pub(super) fn finding(scope: ComparisonScope, finding: &Finding) -> String {
    let what = what(finding);
    match scope {
        ComparisonScope::ServedVersions => format!(
            "from the older to the newer version, {what}; both are served and objects pass from one \
             to the other: make them alike, or add a conversion webhook"
        ),
        ComparisonScope::Definition | ComparisonScope::SameVersion => {
            format!("{what}: {}", advice(finding))
        }
    }
}

fn what(finding: &Finding) -> String {
    let Finding { old, new, .. } = finding;
    let rule = finding.rule.as_str();
    if finding.is_removed && finding.rule == UpgradeRule::Type {
        return format!("the field of type {} is gone", shown(old));
    }
    match finding.rule {
        UpgradeRule::Required => format!("{} becomes required", list(new)),
        UpgradeRule::Enum if old.is_null() => format!("only {} is allowed now", list(new)),
        UpgradeRule::Enum => format!("{} is not allowed any more", list(old)),
        UpgradeRule::OneOf if old.is_null() => {
            "there are alternatives now, of which exactly one has to match".to_owned()
        }
        UpgradeRule::OneOf if new.is_array() => {
            "oneOf has more alternatives, of which still exactly one has to match".to_owned()
        }
        UpgradeRule::OneOf => {
            let number = old.as_array().map_or(0, Vec::len);
            format!("{number} of the alternatives in oneOf are gone or changed")
        }
        UpgradeRule::Unhandled => {
            let all = || old.as_object().into_iter().flat_map(|it| it.keys().cloned()).collect();
            let fields: Vec<String> =
                if finding.harmful.is_empty() { all() } else { finding.harmful.clone() };
            let verb = if fields.len() == 1 { "changes" } else { "change" };
            format!("{} {verb}", fields.join(", "))
        }
        UpgradeRule::Nullable if new.is_null() => "null is not allowed any more".to_owned(),
        UpgradeRule::Nullable => "null becomes a value".to_owned(),
        UpgradeRule::Scope
        | UpgradeRule::StoredVersionRemoval
        | UpgradeRule::ExistingFieldRemoval
        | UpgradeRule::Schema
        | UpgradeRule::Default
        | UpgradeRule::Maximum
        | UpgradeRule::MaxItems
        | UpgradeRule::MaxLength
        | UpgradeRule::MaxProperties
        | UpgradeRule::Minimum
        | UpgradeRule::MinItems
        | UpgradeRule::MinLength
        | UpgradeRule::MinProperties
        | UpgradeRule::Pattern
        | UpgradeRule::Type => match (old.is_null(), new.is_null()) {
            (true, _) => format!("{rule} is added: {}", shown(new)),
            (false, true) => format!("{rule} is removed: {}", shown(old)),
            (false, false) => format!("{rule} changes from {} to {}", shown(old), shown(new)),
        },
    }
}

fn advice(finding: &Finding) -> &'static str {
    if finding.is_removed {
        return "keep the field";
    }
    match finding.rule {
        UpgradeRule::Required => "make it optional, or require it in a new version",
        UpgradeRule::Default => {
            "keep the default, since objects without the field would change their meaning"
        }
        UpgradeRule::Type | UpgradeRule::Nullable => "keep it, or add another field",
        UpgradeRule::Unhandled if finding.harmful == ["additionalProperties"] => {
            "keep what is there; the fields below it that are named have their own problems"
        }
        UpgradeRule::Unhandled => "keep what is there, or change it in a new version",
        UpgradeRule::Scope
        | UpgradeRule::StoredVersionRemoval
        | UpgradeRule::ExistingFieldRemoval
        | UpgradeRule::Schema
        | UpgradeRule::Enum
        | UpgradeRule::Maximum
        | UpgradeRule::MaxItems
        | UpgradeRule::MaxLength
        | UpgradeRule::MaxProperties
        | UpgradeRule::Minimum
        | UpgradeRule::MinItems
        | UpgradeRule::MinLength
        | UpgradeRule::MinProperties
        | UpgradeRule::OneOf
        | UpgradeRule::Pattern => {
            "objects that are valid may become invalid; allow what was allowed, or change it in a \
             new version"
        }
    }
}

fn list(values: &Value) -> String {
    let shown: Vec<String> = values.as_array().into_iter().flatten().map(shown).collect();
    shown.join(", ")
}

/// A value on one line, cut where it gets long.
fn shown(value: &Value) -> String {
    /// Room for a pattern or a small object.
    const LENGTH_MAX: usize = 120;
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match text.char_indices().nth(LENGTH_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
