//! Operators as plans write them, to files or to a cluster.

use plimsoll_api::OPERATOR;
use plimsoll_api::olm::{
    CHANGE_SET_ANNOTATION, INSTALLED_AS_DEPENDENCY, INSTALLED_AS_LABEL, INSTALLED_AS_USER,
};
use serde_json::{Value, json};

/// An Operator to create or to change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperatorManifest {
    /// The name of the Operator.
    pub name: String,
    /// The version or range for its spec.
    pub version: String,
    /// Whether it is installed as a dependency of other Operators. Only written if it is created.
    pub is_dependency: bool,
    /// Whether the label of one that exists as a dependency says from now on that a person asked for it.
    pub becomes_requested: bool,
    /// The channel; `None` for the default one. Only written if it is created.
    pub channel: Option<String>,
    /// The name of the catalog; `None` for any. Only written if it is created.
    pub repository: Option<String>,
    /// The namespace; `None` for the one that its bundle suggests. Only written if it is created.
    pub namespace: Option<String>,
    /// What becomes of objects that exist, as `spec.collisionProtection`; `None` for the default. Only written
    /// if it is created.
    pub collision_protection: Option<String>,
    /// The change of the annotation of its change set.
    pub change_set: ChangeSetEdit,
    /// The object as a file declares it: whatever the other fields do not say is as in it. Null if no file does.
    /// Only written if it is created.
    pub declared: Value,
}

/// A change of the annotation of a change set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ChangeSetEdit {
    /// The annotation is unchanged.
    #[default]
    Keep,
    /// The annotation is removed.
    Remove,
    /// The annotation is set to this value.
    Set(String),
}

impl ChangeSetEdit {
    /// Returns the value of the annotation after the change; `None` if it is removed or unchanged.
    pub fn value(&self) -> Option<&str> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Remove => None,
        }
    }
}

impl OperatorManifest {
    /// Returns the Operator as the object to create.
    pub fn object(&self) -> Value {
        let is_dependency = self.is_dependency;
        let installed_as = if is_dependency { INSTALLED_AS_DEPENDENCY } else { INSTALLED_AS_USER };
        let metadata = &self.declared["metadata"];
        let fields = |of: &Value| of.as_object().cloned().unwrap_or_default();
        let mut labels = fields(&metadata["labels"]);
        if self.becomes_requested {
            labels.insert(INSTALLED_AS_LABEL.to_owned(), INSTALLED_AS_USER.into());
        }
        labels.entry(INSTALLED_AS_LABEL).or_insert_with(|| installed_as.into());
        let mut spec = fields(&self.declared["spec"]);
        spec.insert("version".to_owned(), self.version.as_str().into());
        let mut object = json!({
            "apiVersion": OPERATOR.api_version(),
            "kind": OPERATOR.kind,
            "metadata": { "name": self.name, "labels": labels },
            "spec": spec,
        });
        let annotations = fields(&metadata["annotations"]);
        if !annotations.is_empty() {
            object["metadata"]["annotations"] = annotations.into();
        }
        if let Some(set) = self.change_set.value() {
            object["metadata"]["annotations"][CHANGE_SET_ANNOTATION] = set.into();
        }
        for (field, value) in self.sources() {
            object["spec"][field] = value.into();
        }
        object
    }

    /// Returns the fields of the spec that say where the Operator is from and where it is installed, beside
    /// what.
    pub fn sources(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let fields = [
            ("channel", &self.channel),
            ("repository", &self.repository),
            ("namespace", &self.namespace),
            ("collisionProtection", &self.collision_protection),
        ];
        fields.into_iter().filter_map(|(field, value)| Some((field, value.as_deref()?)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ChangeSetEdit, OperatorManifest};

    #[test]
    fn what_a_file_declares_stays_unless_the_plan_says_otherwise() {
        let check = |declared: Value, set: ChangeSetEdit, expected: Value| {
            let manifest = OperatorManifest {
                name: "foo".to_owned(),
                version: "1.2.3".to_owned(),
                change_set: set,
                declared,
                ..OperatorManifest::default()
            };
            assert_eq!(manifest.object(), expected);
        };
        check(
            Value::Null,
            ChangeSetEdit::Keep,
            json!({
                "apiVersion": "olm.io/v1", "kind": "Operator",
                "metadata": { "name": "foo", "labels": { "olm.io/installed-as": "user" } },
                "spec": { "version": "1.2.3" },
            }),
        );
        check(
            json!({
                "metadata": {
                    "labels": { "team": "quay", "olm.io/installed-as": "dependency" },
                    "annotations": { "note": "kept" },
                },
                "spec": { "version": "~1.2", "upgradePolicy": "Any" },
            }),
            ChangeSetEdit::Set("a/2".to_owned()),
            json!({
                "apiVersion": "olm.io/v1", "kind": "Operator",
                "metadata": {
                    "name": "foo",
                    "labels": { "team": "quay", "olm.io/installed-as": "dependency" },
                    "annotations": { "note": "kept", "olm.io/change-set": "a/2" },
                },
                "spec": { "version": "1.2.3", "upgradePolicy": "Any" },
            }),
        );
    }
}
