//! Who somebody is.
use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The group of those who may do everything.
pub(crate) const MASTERS: &str = "system:masters";
/// The group of everybody who said who they are.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody who did not.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of whoever did not say who they are.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// A user as the API server sees one: `userInfo` of reviews, admission and audit.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserInfo {
    /// The name, unique among users that are active.
    pub username: String,
    /// Tells apart users that have the same name at different times; may be empty.
    pub uid: String,
    /// The groups that the user is a member of.
    pub groups: Vec<String>,
    /// What else the authenticator knows, by keys in lowercase.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// A user of some groups, without uid or anything else.
    pub fn new(
        username: impl Into<String>,
        groups: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            username: username.into(),
            groups: groups.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// The administrator, who may do everything: `system:admin` of `system:masters`.
    pub fn administrator() -> Self {
        Self::new("system:admin", [MASTERS, AUTHENTICATED])
    }

    /// Somebody who did not say who they are: `system:anonymous` of `system:unauthenticated`.
    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS, [UNAUTHENTICATED])
    }

    /// Whether the user is a member of a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|found| found == group)
    }

    /// The user as API objects show it, without what is empty.
    pub(crate) fn to_value(&self) -> Value {
        let mut value = Map::new();
        for (field, text) in [("username", &self.username), ("uid", &self.uid)] {
            if !text.is_empty() {
                value.insert(field.to_owned(), text.as_str().into());
            }
        }
        if !self.groups.is_empty() {
            value.insert("groups".to_owned(), self.groups.clone().into());
        }
        if !self.extra.is_empty() {
            let extra: Map<String, Value> = self
                .extra
                .iter()
                .map(|(key, values)| (key.clone(), values.clone().into()))
                .collect();
            value.insert("extra".to_owned(), extra.into());
        }
        Value::Object(value)
    }
}
