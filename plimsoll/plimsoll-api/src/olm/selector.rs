//! Selectors of objects by their labels, as `metav1.LabelSelector` has them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Labels that objects have. All requirements have to hold; without any, all objects are selected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels with the value that each has.
    // +kubebuilder:validation:MaxProperties=64
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements of single labels.
    // +kubebuilder:validation:XValidation:rule="self.all(it, (it.operator in ['In', 'NotIn']) == has(it.values))",
    //  message="operators In and NotIn need values, and no other has any"
    // +listType=atomic
    // +kubebuilder:validation:MaxItems=64
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelRequirement>,
}

/// A requirement of a label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LabelRequirement {
    /// The label.
    // +required
    // +kubebuilder:validation:MinLength=1
    // +kubebuilder:validation:MaxLength=317
    pub key: String,
    /// `In` or `NotIn` the values, `Exists` or `DoesNotExist`.
    // +required
    // +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
    pub operator: LabelOperator,
    /// The values, of `In` and `NotIn`.
    // +listType=atomic
    // +kubebuilder:validation:MinItems=1
    // +kubebuilder:validation:MaxItems=64
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LabelOperator {
    /// It has one of the values.
    #[default]
    In,
    /// It has none of the values, or does not exist.
    NotIn,
    /// It exists, with any value.
    Exists,
    /// It does not exist.
    DoesNotExist,
}

impl LabelSelector {
    /// Returns whether an object with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|it| it.holds(labels.get(&it.key)))
    }
}

impl LabelRequirement {
    /// Returns whether it holds of the value of the label; `None` if there is none.
    fn holds(&self, value: Option<&String>) -> bool {
        match self.operator {
            LabelOperator::In => value.is_some_and(|it| self.values.contains(it)),
            LabelOperator::NotIn => value.is_none_or(|it| !self.values.contains(it)),
            LabelOperator::Exists => value.is_some(),
            LabelOperator::DoesNotExist => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn all_requirements_have_to_hold() {
        let labels = json!({ "tenant": "a", "tier": "dev" });
        let labels: BTreeMap<String, String> = serde_json::from_value(labels).unwrap();
        let check = |selector: Value, expected: bool| {
            let read: LabelSelector = serde_json::from_value(selector.clone()).unwrap();
            assert_eq!(read.matches(&labels), expected, "{selector}");
        };
        let requires = |requirement: Value| json!({ "matchExpressions": [requirement] });
        check(json!({}), true);
        check(json!({ "matchLabels": { "tenant": "a", "tier": "dev" } }), true);
        check(json!({ "matchLabels": { "tenant": "a", "tier": "prod" } }), false);
        check(json!({ "matchLabels": { "region": "a" } }), false);
        let of = |key: &str, operator: &str| json!({ "key": key, "operator": operator });
        check(requires(of("tier", "Exists")), true);
        check(requires(of("region", "Exists")), false);
        check(requires(of("tier", "DoesNotExist")), false);
        check(requires(of("region", "DoesNotExist")), true);
        let among = |key: &str, operator: &str| json!({ "key": key, "operator": operator, "values": ["dev"] });
        check(requires(among("tier", "In")), true);
        check(requires(among("tenant", "In")), false);
        check(requires(among("region", "In")), false);
        check(requires(among("tier", "NotIn")), false);
        check(requires(among("tenant", "NotIn")), true);
        check(requires(among("region", "NotIn")), true);
        let both = json!({
            "matchLabels": { "tenant": "a" }, "matchExpressions": [of("tier", "DoesNotExist")],
        });
        check(both, false);
    }
}
