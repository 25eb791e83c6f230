//! How objects are identified: group, kind, namespace and name; never the version.

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
