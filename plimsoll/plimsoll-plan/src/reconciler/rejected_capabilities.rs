//! Capabilities that the installed definition of ClusterVersion does not let its status name.
//!
//! A payload may bring a definition with an enumeration of capabilities, and a later payload a
//! capability that is not in it. The API server then rejects the whole status. So the status is
//! written without the rejected names, which ReleaseProgress lists instead, and the full status is
//! retried from time to time: the release may have brought its own definition since.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::Uptime;

/// How long names are left out of the status before they are retried.
pub const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// How soon they are retried when the definition has changed: the server needs a moment.
pub const RETRY_SOON: Duration = Duration::from_millis(100);

/// The lists of a status that hold names of capabilities.
const LISTS: [&str; 2] = ["enabledCapabilities", "knownCapabilities"];

/// The names of capabilities that are left out of the ClusterVersion's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedCapabilities {
    names: BTreeSet<String>,
    retry_at: Uptime,
}

impl RejectedCapabilities {
    /// These names were rejected just now.
    pub fn new(names: BTreeSet<String>, now: Uptime) -> Self {
        Self { names, retry_at: now + RETRY_INTERVAL }
    }

    /// The names that are left out; empty when the status names everything.
    pub fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// When to write the status with all names again; `None` while none is left out.
    pub fn retry_at(&self) -> Option<Uptime> {
        (!self.names.is_empty()).then_some(self.retry_at)
    }

    /// Whether it is time to write the status with all names again.
    pub fn is_retry_due(&self, now: Uptime) -> bool {
        self.retry_at().is_some_and(|at| now >= at)
    }

    /// The definition of ClusterVersion changed and may permit the names now.
    pub fn definition_changed(&mut self, now: Uptime) {
        self.retry_at = self.retry_at.min(now + RETRY_SOON);
    }

    /// The names to leave out of a status that is written now: none when a retry is due.
    pub fn left_out(&self, now: Uptime) -> BTreeSet<String> {
        if now >= self.retry_at { BTreeSet::new() } else { self.names.clone() }
    }

    /// A status was written without `names`. `is_retry` says that all names had been tried before;
    /// the next retry counts from a retry or a change of the names.
    pub fn written_without(&mut self, names: BTreeSet<String>, is_retry: bool, now: Uptime) {
        if is_retry || names != self.names {
            *self = Self::new(names, now);
        }
    }

    /// What ReleaseProgress says about the names; empty when none is left out.
    pub fn message(&self) -> String {
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

/// The names of capabilities at the fields of a status that an API server rejected, such as
/// `status.capabilities.enabledCapabilities[3]`; empty when it rejected the status for another
/// reason.
pub fn rejected_names<'a>(
    fields: impl IntoIterator<Item = &'a str>,
    status: &Value,
) -> BTreeSet<String> {
    fields.into_iter().filter_map(|field| name_at(field, status)).collect()
}

fn name_at(field: &str, status: &Value) -> Option<String> {
    let (list, index) = field.strip_prefix("status.capabilities.")?.split_once('[')?;
    let index: usize = index.strip_suffix(']')?.parse().ok()?;
    LISTS.contains(&list).then_some(())?;
    status.get("capabilities")?.get(list)?.get(index)?.as_str().map(str::to_owned)
}

/// A status without some names of capabilities.
pub fn without(status: &Value, names: &BTreeSet<String>) -> Value {
    let mut status = status.clone();
    if let Some(capabilities) = status.get_mut("capabilities") {
        for list in LISTS {
            if let Some(list) = capabilities.get_mut(list).and_then(Value::as_array_mut) {
                list.retain(|name| name.as_str().is_none_or(|name| !names.contains(name)));
            }
        }
    }
    status
}

#[cfg(test)]
mod tests;
