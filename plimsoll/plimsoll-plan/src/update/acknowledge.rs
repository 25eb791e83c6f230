//! Gates that an administrator has to acknowledge before a minor update (CV-19).
//!
//! A release puts questions into one ConfigMap, an administrator answers in another. Where neither
//! exists there is nothing to ask: a platform that does not use them is not held up.

use std::collections::BTreeMap;
use std::fmt;

use plimsoll_api::Reason;
use semver::Version;

/// The ConfigMap with the questions.
pub const GATES: ConfigMapName =
    ConfigMapName { namespace: "openshift-config-managed", name: "admin-gates" };
/// The ConfigMap with the answers.
pub const ACKS: ConfigMapName = ConfigMapName { namespace: "openshift-config", name: "admin-acks" };
/// The one answer that counts.
const ACKNOWLEDGED: &str = "true";

/// Which ConfigMap of a cluster is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigMapName {
    /// Its namespace.
    pub namespace: &'static str,
    /// Its name.
    pub name: &'static str,
}

impl fmt::Display for ConfigMapName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The two ConfigMaps as the cluster has them; `None` for one that does not exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acknowledgements {
    /// Questions by key: `ack-4.22-storage` applies to clusters at 4.22.
    pub gates: Option<BTreeMap<String, String>>,
    /// Answers by the same keys.
    pub acks: Option<BTreeMap<String, String>>,
}

/// What is missing for a minor update of a cluster at `current`: reason and message.
pub fn missing(given: &Acknowledgements, current: &str) -> Option<(Reason, String)> {
    let (gates, acks) = match (&given.gates, &given.acks) {
        (None, None) => return None,
        (None, Some(_)) => {
            let reason = Reason::UnableToAccessAdminGatesConfigMap;
            return Some((reason, no_such_config_map(GATES)));
        }
        (Some(_), None) => {
            let reason = Reason::UnableToAccessAdminAcksConfigMap;
            return Some((reason, no_such_config_map(ACKS)));
        }
        (Some(gates), Some(acks)) => (gates, acks),
    };
    let found: Vec<(Reason, String)> =
        gates.iter().filter_map(|(key, text)| gate(key, text, acks, current)).collect();
    match found.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        several => {
            let mut reasons: Vec<Reason> = several.iter().map(|(reason, _)| *reason).collect();
            reasons.dedup();
            let reason = if reasons.len() == 1 { reasons[0] } else { Reason::MultipleReasons };
            let texts: Vec<&str> = several.iter().map(|(_, text)| text.as_str()).collect();
            Some((reason, texts.join(" ")))
        }
    }
}

fn no_such_config_map(name: ConfigMapName) -> String {
    format!("There is no ConfigMap \"{name}\", so gates cannot be evaluated.")
}

fn gate(
    key: &str,
    text: &str,
    acks: &BTreeMap<String, String>,
    current: &str,
) -> Option<(Reason, String)> {
    let Some(version) = gated_version(key) else {
        let message = format!(
            "ConfigMap \"{GATES}\" has a gate {key:?}, which is not of the form \
             ack-<major>.<minor>-<description>."
        );
        return Some((Reason::AdminAckConfigMapGateNameError, message));
    };
    if Version::parse(current).ok().map(|it| (it.major, it.minor)) != Some(version) {
        return None;
    }
    if text.is_empty() {
        let message = format!("ConfigMap \"{GATES}\" has a gate {key:?} without a text.");
        return Some((Reason::AdminAckConfigMapGateValueError, message));
    }
    let acknowledged = acks.get(key).map(String::as_str) == Some(ACKNOWLEDGED);
    (!acknowledged).then(|| (Reason::AdminAckRequired, text.to_owned()))
}

/// Major and minor version in the key of a gate; 4 and 5 are the major versions that have them.
fn gated_version(key: &str) -> Option<(u64, u64)> {
    let (version, description) = key.strip_prefix("ack-")?.split_once('-')?;
    let (major, minor) = version.split_once('.')?;
    let minor_is_number = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
    let described = description.starts_with(|first: char| first != '-');
    if !matches!(major, "4" | "5") || !minor_is_number || !described {
        return None;
    }
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    //! CVS-47.

    use std::collections::BTreeMap;

    use super::{Acknowledgements, missing};

    fn map(text: &str) -> Option<BTreeMap<String, String>> {
        let pair = |pair: &str| {
            let (key, value) = pair.split_once('=').expect("a pair");
            (key.to_owned(), value.to_owned())
        };
        (text != "absent").then(|| text.split_whitespace().map(pair).collect())
    }

    #[track_caller]
    fn check(gates: &str, acks: &str, expected: &str) {
        let given = Acknowledgements { gates: map(gates), acks: map(acks) };
        let found = missing(&given, "4.3.7").map(|(reason, text)| format!("{reason}: {text}"));
        assert_eq!(found.unwrap_or_default(), expected, "{gates} {acks}");
    }

    #[test]
    fn a_gate_of_this_minor_version_is_answered_with_true() {
        check("ack-4.3-foo=text", "", "AdminAckRequired: text");
        check("ack-4.3-foo=text", "ack-4.3-foo=True", "AdminAckRequired: text");
        check("ack-4.3-foo=text", "ack-4.3-foo=true", "");
        check("ack-4.4-foo=text", "", "");
        check("ack-4.3-a=one ack-4.3-b=two", "", "AdminAckRequired: one two");
        check(
            "ack-4.3=text",
            "",
            "AdminAckConfigMapGateNameError: ConfigMap \"openshift-config-managed/admin-gates\" \
             has a gate \"ack-4.3\", which is not of the form ack-<major>.<minor>-<description>.",
        );
        check(
            "ack-4.3-foo=",
            "",
            "AdminAckConfigMapGateValueError: ConfigMap \"openshift-config-managed/admin-gates\" \
             has a gate \"ack-4.3-foo\" without a text.",
        );
    }

    #[test]
    fn nothing_is_asked_where_no_gates_are_used() {
        check("absent", "absent", "");
        check(
            "",
            "absent",
            "UnableToAccessAdminAcksConfigMap: There is no ConfigMap \
             \"openshift-config/admin-acks\", so gates cannot be evaluated.",
        );
        check(
            "absent",
            "",
            "UnableToAccessAdminGatesConfigMap: There is no ConfigMap \
             \"openshift-config-managed/admin-gates\", so gates cannot be evaluated.",
        );
    }
}
