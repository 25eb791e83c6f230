//! Users.
use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The group of users who may do everything.
pub(crate) const MASTERS: &str = "system:masters";
/// The group of all authenticated users.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of all unauthenticated users.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of unauthenticated users.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// A user: the `userInfo` of reviews, admission and audit.
///
/// As an extension of a request in process, it is the user that the request comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserInfo {
    /// The name, unique among all current users.
    pub username: String,
    /// Distinguishes users of the same name over time; may be empty.
    pub uid: String,
    /// The groups that the user is a member of.
    pub groups: Vec<String>,
    /// Further attributes that the authenticator sets, by keys in lowercase.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// A user with some groups, and without uid and extra attributes.
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

    /// The administrator: `system:admin` in the group `system:masters`.
    pub fn administrator() -> Self {
        Self::new("system:admin", [MASTERS, AUTHENTICATED])
    }

    /// The unauthenticated user: `system:anonymous` in the group `system:unauthenticated`.
    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS, [UNAUTHENTICATED])
    }

    /// Whether the user is a member of a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|found| found == group)
    }

    /// The user as a `userInfo` document, without empty fields.
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
