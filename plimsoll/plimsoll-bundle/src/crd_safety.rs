//! Whether a CustomResourceDefinition may be replaced by another one, and what it would break.
//!
//! [`check`] compares two definitions of one resource: the definition itself, each version with its
//! predecessor, and the served versions with one another, since objects move between these without
//! a conversion webhook. A change is a problem unless every object that was accepted is accepted
//! afterwards and means the same; what is not known to be harmless is a problem too.
//!
//! The rules and their names are those of the preflight check of OLM v1. It also refuses harmless
//! changes; those are no problems here, but [`UpgradeVerdict::differences`] names each, because
//! authors ship to both.
//!
//! [`invalidated`] names the objects of a cluster that the new schema would not accept any more.

mod canonical;
mod compare;
mod definition;
mod objects;
mod ratchet;
mod wording;

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use compare::{Comparison, Finding};
use definition::{DefinitionVersion, ReplacedDefinition};
use ratchet::Ratcheted;

pub use definition::DefinitionError;
pub use objects::{InvalidatedObject, invalidated};

/// Whether a definition may replace another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeVerdict {
    /// There are no problems.
    pub allowed: bool,
    /// Why it may not, in order.
    pub problems: Vec<UpgradeProblem>,
    /// What OLM v1 decides.
    pub upstream: UpstreamVerdict,
    /// What OLM v1 refuses besides, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<UpstreamDifference>,
}

/// A change that breaks objects, or may break them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeProblem {
    /// What was compared.
    pub scope: ComparisonScope,
    /// The version (`v1`) or pair of versions (`v1beta1 -> v1`); absent of the definition itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The path of the field, from `^`; absent where no single field is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub property: Option<String>,
    /// The rule that is broken.
    pub rule: UpgradeRule,
    /// What changes, and what to do about it.
    pub message: String,
}

/// A harmless change that OLM v1 refuses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamDifference {
    /// What was compared.
    pub scope: ComparisonScope,
    /// The version or pair of versions; absent of the definition itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The path of the field, from `^`; absent where no single field is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub property: Option<String>,
    /// The rule that OLM v1 takes it for.
    pub rule: UpgradeRule,
    /// What OLM v1 does.
    pub upstream: UpstreamVerdict,
    /// Why it is no problem.
    pub reason: DifferenceReason,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ComparisonScope {
    /// The definition as a whole.
    #[serde(rename = "crd")]
    Definition,
    /// A version before and after.
    #[serde(rename = "same")]
    SameVersion,
    /// Two versions that are served beside each other.
    #[serde(rename = "served")]
    ServedVersions,
}

/// What OLM v1 does with a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum UpstreamVerdict {
    /// It accepts it.
    Allowed,
    /// It refuses it.
    Refused,
    /// It accepts it in some runs and refuses it in others.
    Random,
    /// It crashes.
    Crash,
}

impl fmt::Display for UpstreamVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allowed => "allows it",
            Self::Refused => "refuses it",
            Self::Random => "refuses it in some runs",
            Self::Crash => "crashes",
        })
    }
}

/// Why a change that OLM v1 refuses is harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DifferenceReason {
    /// Only texts for people changed.
    Documentation,
    /// Everything that was accepted still is.
    Relaxed,
    /// It is written otherwise and means the same.
    SameMeaning,
    /// The schema of the values of a map changed, compatibly.
    MapValues,
    /// The served versions differed before, at least as much.
    Existing,
}

impl fmt::Display for DifferenceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Documentation => "only texts for people change",
            Self::Relaxed => "what was accepted still is",
            Self::SameMeaning => "it is written otherwise and means the same",
            Self::MapValues => "the schema of the map's values changes compatibly",
            Self::Existing => "the versions differ no more than before",
        })
    }
}

/// The rules that a change can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum UpgradeRule {
    /// The scope stays.
    Scope,
    /// Versions that objects are stored in stay.
    StoredVersionRemoval,
    /// Fields stay.
    ExistingFieldRemoval,
    /// A version that had a schema has one, and one without gets none.
    Schema,
    /// `default` stays.
    Default,
    /// No value leaves `enum`.
    Enum,
    /// `maximum` is not lowered.
    Maximum,
    /// `maxItems` is not lowered.
    MaxItems,
    /// `maxLength` is not lowered.
    MaxLength,
    /// `maxProperties` is not lowered.
    MaxProperties,
    /// `minimum` is not raised.
    Minimum,
    /// `minItems` is not raised.
    MinItems,
    /// `minLength` is not raised.
    MinLength,
    /// `minProperties` is not raised.
    MinProperties,
    /// `nullable` stays.
    Nullable,
    /// No alternative leaves `oneOf`, or joins it.
    OneOf,
    /// `pattern` stays.
    Pattern,
    /// No field becomes required.
    Required,
    /// `type` stays.
    Type,
    /// All other changes.
    Unhandled,
}

impl UpgradeRule {
    /// The name that OLM v1 gives it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scope => "scope",
            Self::StoredVersionRemoval => "storedVersionRemoval",
            Self::ExistingFieldRemoval => "existingFieldRemoval",
            Self::Schema => "schema",
            Self::Default => "default",
            Self::Enum => "enum",
            Self::Maximum => "maximum",
            Self::MaxItems => "maxItems",
            Self::MaxLength => "maxLength",
            Self::MaxProperties => "maxProperties",
            Self::Minimum => "minimum",
            Self::MinItems => "minItems",
            Self::MinLength => "minLength",
            Self::MinProperties => "minProperties",
            Self::Nullable => "nullable",
            Self::OneOf => "oneOf",
            Self::Pattern => "pattern",
            Self::Required => "required",
            Self::Type => "type",
            Self::Unhandled => "unhandled",
        }
    }
}

/// Whether the definition `new` may replace `old`, which is as the cluster has it: its
/// `status.storedVersions` says in which versions there are objects.
///
/// # Errors
///
/// When either is no CustomResourceDefinition, or they define two resources.
///
/// Upstream: sigs.k8s.io/crdify/pkg/runner/runner.go: Run
pub fn check(old: &Value, new: &Value) -> Result<UpgradeVerdict, DefinitionError> {
    let (old, new) = definition::pair(old, new)?;
    let mut judge = Judge::default();
    judge.definition(&old, &new);
    for (before, after) in old.versions.iter().filter_map(|it| Some((it, new.version(&it.name)?))) {
        judge.same_version(before, after);
    }
    if !new.has_conversion_webhook {
        judge.served_versions(&old, &new);
    }
    Ok(judge.verdict())
}

/// Collects what is found.
#[derive(Default)]
struct Judge {
    problems: Vec<UpgradeProblem>,
    differences: Vec<UpstreamDifference>,
    /// OLM v1 reads a schema that is not there.
    upstream_crashes: bool,
}

impl Judge {
    fn problem(&mut self, scope: ComparisonScope, rule: UpgradeRule, message: String) {
        self.problems.push(UpgradeProblem { scope, version: None, property: None, rule, message });
    }

    /// Upstream: sigs.k8s.io/crdify/pkg/validations/crd/scope/scope.go: Compare
    /// Upstream: sigs.k8s.io/crdify/pkg/validations/crd/storedversionremoval/storedversionremoval.go: Compare
    fn definition(&mut self, old: &ReplacedDefinition, new: &ReplacedDefinition) {
        let scope = ComparisonScope::Definition;
        if old.scope != new.scope {
            self.problem(scope, UpgradeRule::Scope, wording::scope(&old.scope, &new.scope));
        }
        let removed: Vec<&str> = old
            .stored_versions
            .iter()
            .map(String::as_str)
            .filter(|name| new.version(name).is_none())
            .collect();
        if !removed.is_empty() {
            let text = wording::stored_versions(&removed);
            self.problem(scope, UpgradeRule::StoredVersionRemoval, text);
        }
    }

    /// Upstream: sigs.k8s.io/crdify/pkg/validators/version/same/same.go: Validate
    /// Upstream: sigs.k8s.io/crdify/pkg/validations/crd/existingfieldremoval/existingfieldremoval.go: Compare
    fn same_version(&mut self, old: &DefinitionVersion, new: &DefinitionVersion) {
        let (Some(before), Some(after)) = (&old.schema, &new.schema) else {
            self.upstream_crashes = true;
            if old.schema.is_some() != new.schema.is_some() {
                self.problems.push(UpgradeProblem {
                    scope: ComparisonScope::SameVersion,
                    version: Some(old.name.clone()),
                    property: None,
                    rule: UpgradeRule::Schema,
                    message: wording::schema(old.schema.is_some()).to_owned(),
                });
            }
            return;
        };
        let comparison = compare::compare(before, after);
        for field in comparison.removed {
            let (scope, rule) = (ComparisonScope::Definition, UpgradeRule::ExistingFieldRemoval);
            match field.excuse {
                None => self.problem(scope, rule, wording::removed_field(&old.name, &field.path)),
                Some(reason) => self.differences.push(UpstreamDifference {
                    scope,
                    version: None,
                    property: None,
                    rule,
                    upstream: UpstreamVerdict::Refused,
                    reason,
                }),
            }
        }
        for finding in comparison.findings {
            let excuse = finding.excuse.map(|reason| (reason, UpstreamVerdict::Refused));
            self.finding(ComparisonScope::SameVersion, &old.name, &finding, excuse);
        }
    }

    /// Upstream: sigs.k8s.io/crdify/pkg/validators/version/served/served.go: Validate
    fn served_versions(&mut self, old: &ReplacedDefinition, new: &ReplacedDefinition) {
        for (older, newer) in new.served_pairs() {
            let name = format!("{} -> {}", older.name, newer.name);
            let Some(comparison) = self.compare_pair(older, newer) else { continue };
            let before = old
                .served_pairs()
                .into_iter()
                .find(|it| it.0.name == older.name && it.1.name == newer.name)
                .and_then(|(older, newer)| self.compare_pair(older, newer));
            let known = before.map(|it| it.findings).unwrap_or_default();
            for finding in comparison.findings {
                let excuse = match ratchet::judge(&finding, &known) {
                    Ratcheted::Silent => continue,
                    Ratcheted::Excused(upstream) => Some((DifferenceReason::Existing, upstream)),
                    Ratcheted::Reported => {
                        finding.excuse.map(|reason| (reason, UpstreamVerdict::Refused))
                    }
                };
                self.finding(ComparisonScope::ServedVersions, &name, &finding, excuse);
            }
        }
        // It compares the former versions whatever the present ones are.
        self.upstream_crashes |= old
            .served_pairs()
            .iter()
            .any(|(older, newer)| older.schema.is_none() || newer.schema.is_none());
    }

    fn compare_pair(
        &mut self,
        older: &DefinitionVersion,
        newer: &DefinitionVersion,
    ) -> Option<Comparison> {
        let (Some(older), Some(newer)) = (&older.schema, &newer.schema) else {
            self.upstream_crashes = true;
            return None;
        };
        Some(compare::compare(older, newer))
    }

    fn finding(
        &mut self,
        scope: ComparisonScope,
        version: &str,
        finding: &Finding,
        excuse: Option<(DifferenceReason, UpstreamVerdict)>,
    ) {
        let (version, property) = (Some(version.to_owned()), Some(finding.path.clone()));
        let rule = finding.rule;
        match excuse {
            None => {
                let message = wording::finding(scope, finding);
                self.problems.push(UpgradeProblem { scope, version, property, rule, message });
            }
            Some((reason, upstream)) => self.differences.push(UpstreamDifference {
                scope,
                version,
                property,
                rule,
                upstream,
                reason,
            }),
        }
    }

    fn verdict(mut self) -> UpgradeVerdict {
        self.problems.sort();
        self.differences.sort();
        self.differences.dedup();
        let known = |problem: &UpgradeProblem| problem.rule != UpgradeRule::Schema;
        let says = |verdict| self.differences.iter().any(|it| it.upstream == verdict);
        let upstream = if self.upstream_crashes {
            UpstreamVerdict::Crash
        } else if self.problems.iter().any(known) || says(UpstreamVerdict::Refused) {
            UpstreamVerdict::Refused
        } else if says(UpstreamVerdict::Random) {
            UpstreamVerdict::Random
        } else {
            UpstreamVerdict::Allowed
        };
        UpgradeVerdict {
            allowed: self.problems.is_empty(),
            problems: self.problems,
            upstream,
            differences: self.differences,
        }
    }
}

#[cfg(test)]
mod tests;
