//! Capabilities that the cluster's definition of ClusterVersion does not let its status name.
//!
//! A payload may bring a definition with an enumeration of capabilities, and a later payload a
//! capability that is not in it. A server refuses the whole status then, with all that it has to
//! tell. So it is written without the names that are refused, which ReleaseProgress tells instead,
//! and from time to time they are offered again: the release may have brought its own definition.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

/// How long to leave names out before they are offered again.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// How long to wait when the definition has changed: the server needs a moment.
const RETRY_SOON: Duration = Duration::from_millis(100);

/// The lists of a status that hold names of capabilities.
const LISTS: [&str; 2] = ["enabledCapabilities", "knownCapabilities"];

/// The names that are left out of the status.
#[derive(Debug, Clone)]
pub(crate) struct RejectedCapabilities {
    pub(crate) names: BTreeSet<String>,
    retry_at: Instant,
}

impl RejectedCapabilities {
    pub(crate) fn new(names: BTreeSet<String>, now: Instant) -> Self {
        Self { names, retry_at: now + RETRY_INTERVAL }
    }

    /// When the names are to be offered again; never while none is left out.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        (!self.names.is_empty()).then_some(self.retry_at)
    }

    /// The definition may take the names now.
    pub(crate) fn retry_soon(&mut self, now: Instant) {
        self.retry_at = self.retry_at.min(now + RETRY_SOON);
    }

    /// What to leave out of a status that is written now.
    pub(crate) fn left_out(&self, now: Instant) -> BTreeSet<String> {
        if now >= self.retry_at { BTreeSet::new() } else { self.names.clone() }
    }

    pub(crate) fn message(&self) -> String {
        if self.names.is_empty() {
            return String::new();
        }
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        format!(
            "the installed CustomResourceDefinition of ClusterVersion does not let its status \
             name {}; they are in force all the same",
            names.join(", ")
        )
    }
}

/// The names of capabilities that a server refused in a status; none if it refused it for another
/// reason.
pub(crate) fn refused(error: &kube::Error, status: &Value) -> BTreeSet<String> {
    let kube::Error::Api(answer) = error else { return BTreeSet::new() };
    let causes = answer.details.as_ref().map(|details| details.causes.as_slice());
    let fields = causes.unwrap_or_default().iter().map(|cause| cause.field.as_str());
    fields.filter_map(|field| named(field, status)).collect()
}

/// The name at a field such as `status.capabilities.enabledCapabilities[3]`.
fn named(field: &str, status: &Value) -> Option<String> {
    let (list, index) = field.strip_prefix("status.capabilities.")?.split_once('[')?;
    let index: usize = index.strip_suffix(']')?.parse().ok()?;
    LISTS.contains(&list).then_some(())?;
    status["capabilities"][list][index].as_str().map(str::to_owned)
}

/// A status without some names of capabilities.
pub(crate) fn without(status: &Value, names: &BTreeSet<String>) -> Value {
    let mut status = status.clone();
    for list in LISTS {
        if let Some(list) = status["capabilities"][list].as_array_mut() {
            list.retain(|name| name.as_str().is_none_or(|name| !names.contains(name)));
        }
    }
    status
}

#[cfg(test)]
mod tests {
    //! Names are found in what a server answers and taken out of what it refused.

    use super::*;
    use kube::core::Status;
    use serde_json::json;

    fn answer(fields: &[&str]) -> kube::Error {
        let cause = |field: &&str| json!({ "reason": "FieldValueNotSupported", "field": field });
        let causes: Vec<Value> = fields.iter().map(cause).collect();
        let status = json!({ "code": 422, "reason": "Invalid", "details": { "causes": causes } });
        let status: Status = serde_json::from_value(status).unwrap();
        kube::Error::Api(status.boxed())
    }

    #[test]
    fn only_the_names_that_are_refused_are_left_out() {
        let status = json!({ "capabilities": {
            "enabledCapabilities": ["A", "B"], "knownCapabilities": ["A", "B", "C"],
        }, "conditions": [] });
        let check = |fields: &[&str], expected: &[&str]| {
            let names: Vec<String> = refused(&answer(fields), &status).into_iter().collect();
            assert_eq!(names, expected);
        };
        check(&["status.capabilities.enabledCapabilities[1]"], &["B"]);
        check(
            &[
                "status.capabilities.knownCapabilities[2]",
                "status.capabilities.knownCapabilities[1]",
            ],
            &["B", "C"],
        );
        check(&["status.capabilities.enabledCapabilities[9]", "status.history", ""], &[]);
        check(&["spec.capabilities.additionalEnabledCapabilities[0]"], &[]);
        let left = without(&status, &["B".to_owned()].into());
        assert_eq!(
            left["capabilities"],
            json!({
                "enabledCapabilities": ["A"], "knownCapabilities": ["A", "C"],
            })
        );
        assert_eq!(without(&json!({}), &["B".to_owned()].into())["capabilities"]["x"], Value::Null);
    }
}
