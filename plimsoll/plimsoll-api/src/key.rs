//! How objects are identified: group, kind, namespace and name; never the version.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A kind of object, without its version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupKind {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind in CamelCase, such as `Deployment`.
    pub kind: String,
}

impl GroupKind {
    /// Names a kind of `group`.
    pub fn new(group: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

/// The namespace of an object, empty if it is cluster-scoped, and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamespacedName {
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// A namespace and a name in one text, for what is kept of many thousands of objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CompactName {
    /// `NAMESPACE/NAME`.
    pub text: Box<str>,
}

impl CompactName {
    /// Names an object; `namespace` is empty for cluster-scoped ones.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { text: format!("{namespace}/{name}").into() }
    }

    /// Returns the namespace; empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.text.split_once('/').unwrap_or_default().0
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.text.split_once('/').unwrap_or_default().1
    }
}

impl From<&NamespacedName> for CompactName {
    fn from(NamespacedName { namespace, name }: &NamespacedName) -> Self {
        Self::new(namespace, name)
    }
}

impl From<&CompactName> for NamespacedName {
    fn from(id: &CompactName) -> Self {
        Self { namespace: id.namespace().to_owned(), name: id.name().to_owned() }
    }
}

/// What identifies an object of a payload in a cluster (CV-2.3): two manifests with
/// the same key are manifests of the same object, whatever their API versions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectKey {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind in CamelCase, such as `Deployment`.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// The kind of the object.
    pub fn group_kind(&self) -> GroupKind {
        GroupKind::new(&self.group, &self.kind)
    }

    /// Removes the namespace if the kind is one of `cluster_kinds`, which have none: what a manifest
    /// says of it means nothing. True if there was one.
    pub fn normalize(&mut self, cluster_kinds: &BTreeSet<GroupKind>) -> bool {
        let is_meaningless =
            !self.namespace.is_empty() && cluster_kinds.contains(&self.group_kind());
        if is_meaningless {
            self.namespace.clear();
        }
        is_meaningless
    }

    /// Returns the key without its namespace.
    #[must_use]
    pub fn without_namespace(&self) -> Self {
        Self { namespace: String::new(), ..self.clone() }
    }

    /// Whether the two may identify one object where it is not known if the kind has namespaces:
    /// one of them may have none, or the namespace of the other may mean nothing.
    pub fn may_be(&self, other: &Self) -> bool {
        let has_none = self.namespace.is_empty() || other.namespace.is_empty();
        self.group == other.group
            && self.kind == other.kind
            && self.name == other.name
            && (has_none || self.namespace == other.namespace)
    }

    /// `namespace/name`, or just the name.
    pub fn namespaced_name(&self) -> String {
        if self.namespace.is_empty() {
            self.name.clone()
        } else {
            format!("{}/{}", self.namespace, self.name)
        }
    }

    /// `deployment.apps/crane -n harbour`: what kubectl takes after `get`, and what commands print.
    pub fn reference(&self) -> String {
        let kind = self.group_kind().to_string().to_lowercase();
        match self.namespace.as_str() {
            "" => format!("{kind}/{}", self.name),
            namespace => format!("{kind}/{} -n {namespace}", self.name),
        }
    }
}

impl fmt::Display for ObjectKey {
    /// `kind.group "namespace/name"`, as conditions and events name it; commands print
    /// [`ObjectKey::reference`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\"", self.group_kind().to_string().to_lowercase(), self.namespaced_name())
    }
}
