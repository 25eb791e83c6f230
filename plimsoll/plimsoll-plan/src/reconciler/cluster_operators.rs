//! The ClusterOperators of a cluster, as watches last showed them.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_api::Verdict;
use serde_json::Value;

use crate::health::gate;
use crate::health::parse;
use crate::plan::Step;
use crate::plan::mode::Mode;
use crate::update::upgradeable::{self, NotUpgradeable};

/// ClusterOperators by name, whether the plan mentions them or not.
#[derive(Debug, Clone, Default)]
pub struct LiveOperators(BTreeMap<String, LiveOperator>);

/// A ClusterOperator as last seen.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveOperator {
    /// Its resourceVersion.
    pub revision: u64,
    /// The whole object.
    pub object: Value,
}

/// The names of ClusterOperators that exist and of those that report trouble, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnhealthyOperators {
    /// Those that do not report `Available=True`.
    pub unavailable: Vec<String>,
    /// Those that report `Available=True` and `Degraded=True`.
    pub degraded: Vec<String>,
    /// What those of both say that are not available or degraded in so many words, by name.
    pub troubles: BTreeMap<String, String>,
    /// All that exist.
    pub existing: BTreeSet<String>,
}

impl LiveOperators {
    /// A watch showed a ClusterOperator; `None` when it is gone.
    pub fn observed(&mut self, name: &str, operator: Option<LiveOperator>) {
        match operator {
            Some(operator) => self.0.insert(name.to_owned(), operator),
            None => self.0.remove(name),
        };
    }

    /// Whether a ClusterOperator exists.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// All ClusterOperators, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &LiveOperator)> {
        self.0.iter()
    }

    /// The verdict at the gate of a ClusterOperator's step.
    pub fn verdict(step: &Step, live: Option<&Value>, mode: Mode) -> Verdict {
        gate::cluster_operator(&step.manifest.object(), live, mode)
    }

    /// Those that object to an update to another minor version.
    pub fn objections(&self) -> Vec<NotUpgradeable> {
        self.0.values().filter_map(|it| upgradeable::objection_of(&it.object)).collect()
    }

    /// Those that report trouble.
    pub fn unhealthy(&self) -> UnhealthyOperators {
        let reports = |operator: &LiveOperator, type_: &str, status: &str| {
            parse::condition(&operator.object, type_).is_some_and(|it| it.status == status)
        };
        let mut unhealthy = UnhealthyOperators {
            existing: self.0.keys().cloned().collect(),
            ..UnhealthyOperators::default()
        };
        for (name, operator) in &self.0 {
            let trouble = gate::trouble(&operator.object);
            unhealthy.troubles.extend(trouble.map(|text| (name.clone(), text)));
            if !reports(operator, "Available", "True") {
                unhealthy.unavailable.push(name.clone());
            } else if reports(operator, "Degraded", "True") {
                unhealthy.degraded.push(name.clone());
            }
        }
        unhealthy
    }
}

#[cfg(test)]
mod tests;
