//! The roles and bindings of a cluster, found by whom they are about.
//!
//! The index is made when somebody is first asked about, and from then on follows the log of
//! writes as a watch does: a request costs the writes to roles and bindings since the last one.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;

use super::rule::Rule;
use crate::semantics::registry::RBAC_GROUP;
use crate::storage::{ObjectKey, StorageId, Store, Stored};
use crate::user::UserInfo;

/// Which objects make up the policy.
const STORAGES: [(&str, bool); 4] = [
    ("clusterroles", true),
    ("roles", true),
    ("clusterrolebindings", false),
    ("rolebindings", false),
];

/// Decides by the roles and bindings of a cluster who may do what.
#[derive(Debug)]
pub(crate) struct Authorizer {
    index: RwLock<Index>,
    allows_everything: bool,
}

/// The policy as it was at a revision.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// The revision that it is complete up to; none before it is made.
    revision: Option<u64>,
    /// Rules of the roles; the namespace is empty for those of the cluster.
    roles: BTreeMap<ObjectKey, Arc<[Rule]>>,
    bindings: BTreeMap<ObjectKey, Binding>,
    /// Names of the bindings of a subject in a namespace.
    by_subject: BTreeMap<(Subject, Box<str>), BTreeSet<Box<str>>>,
}

/// A binding: which subjects get the rules of which role.
#[derive(Clone, Debug, Default)]
pub(super) struct Binding {
    key: ObjectKey,
    role_kind: String,
    role_name: String,
    subjects: Vec<BoundSubject>,
}

/// A subject as a binding names it.
#[derive(Clone, Debug)]
pub(super) struct BoundSubject {
    kind: String,
    name: String,
    namespace: String,
}

/// Whom a binding is about; service accounts are users.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    User(String),
    Group(String),
}

impl Authorizer {
    /// Decides by roles and bindings, or allows everything.
    pub(crate) fn new(allows_everything: bool) -> Self {
        Self { index: RwLock::default(), allows_everything }
    }

    /// Whether nobody looks at roles.
    pub(crate) fn allows_everything(&self) -> bool {
        self.allows_everything
    }

    /// Looks at the index of the present state of `store`.
    pub(super) fn with<T>(&self, store: &Store, look: impl FnOnce(&Index) -> T) -> T {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        if index.revision == Some(store.revision()) {
            return look(&index);
        }
        drop(index);
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        index.follow(store);
        look(&index)
    }
}

impl Index {
    /// Takes in the writes since the last time, or everything if they are not known any more.
    fn follow(&mut self, store: &Store) {
        let followed = self.revision.is_some_and(|seen| self.take_news(store, seen));
        if !followed {
            *self = Self::default();
            for (plural, is_role) in STORAGES {
                for stored in store.list(&StorageId::new(RBAC_GROUP, plural), None) {
                    self.put(is_role, stored);
                }
            }
        }
        self.revision = Some(store.revision());
    }

    fn take_news(&mut self, store: &Store, seen: u64) -> bool {
        if store.revision() < seen {
            return false;
        }
        for (plural, is_role) in STORAGES {
            let storage = StorageId::new(RBAC_GROUP, plural);
            match store.news(&storage, seen) {
                Ok(news) => {
                    for event in news.events {
                        self.forget(is_role, &event.object.key);
                        if let Some(stored) = store.find(&storage, &event.object.key) {
                            self.put(is_role, stored);
                        }
                    }
                }
                // Nothing was ever written to it.
                Err(crate::storage::Lost::Gone) => {}
                Err(crate::storage::Lost::Compacted { .. }) => return false,
            }
        }
        true
    }

    fn put(&mut self, is_role: bool, stored: &Stored) {
        let object = stored.decode();
        if is_role {
            self.roles.insert(stored.key.clone(), Rule::all_of(&object).into());
            return;
        }
        let binding = Binding::read(stored.key.clone(), &object);
        for subject in binding.subjects.iter().filter_map(|subject| binding.resolve(subject)) {
            let place = (subject, binding.key.namespace.clone());
            self.by_subject.entry(place).or_default().insert(binding.key.name.clone());
        }
        self.bindings.insert(stored.key.clone(), binding);
    }

    fn forget(&mut self, is_role: bool, key: &ObjectKey) {
        if is_role {
            self.roles.remove(key);
            return;
        }
        let Some(binding) = self.bindings.remove(key) else { return };
        for subject in binding.subjects.iter().filter_map(|subject| binding.resolve(subject)) {
            let place = (subject, key.namespace.clone());
            if let Some(names) = self.by_subject.get_mut(&place) {
                names.remove(&key.name);
                if names.is_empty() {
                    self.by_subject.remove(&place);
                }
            }
        }
    }

    /// The bindings of a user: those of the cluster by name, then those of a namespace by name;
    /// with each the first of its subjects that the user is.
    pub(super) fn bindings<'a>(
        &'a self,
        user: &UserInfo,
        namespace: &str,
    ) -> Vec<(&'a Binding, &'a BoundSubject)> {
        let mut subjects = vec![Subject::User(user.username.clone())];
        subjects.extend(user.groups.iter().cloned().map(Subject::Group));
        let mut keys = BTreeSet::new();
        for subject in &subjects {
            let places = ["", namespace];
            let places = if namespace.is_empty() { &places[..1] } else { &places[..] };
            for place in places {
                let place = (subject.clone(), Box::from(*place));
                let names = self.by_subject.get(&place).into_iter().flatten();
                keys.extend(names.map(|name| (place.1.clone(), name)));
            }
        }
        keys.into_iter()
            .filter_map(|(namespace, name)| {
                let binding = self.bindings.get(&ObjectKey::new(&namespace, name))?;
                let subject = binding.subjects.iter().find(|subject| {
                    binding.resolve(subject).is_some_and(|found| subjects.contains(&found))
                })?;
                Some((binding, subject))
            })
            .collect()
    }

    /// The rules of the role that a binding refers to.
    ///
    /// # Errors
    /// When there is no such role.
    pub(super) fn rules(&self, binding: &Binding) -> Result<&[Rule], String> {
        let (namespace, noun) = match binding.role_kind.as_str() {
            "Role" if !binding.key.namespace.is_empty() => (&*binding.key.namespace, "role"),
            "ClusterRole" => ("", "clusterrole"),
            other => return Err(format!("unsupported role reference kind: {other:?}")),
        };
        let name = &binding.role_name;
        self.roles
            .get(&ObjectKey::new(namespace, name))
            .map(|rules| &**rules)
            .ok_or_else(|| format!("{noun}.{RBAC_GROUP} {name:?} not found"))
    }
}

impl Binding {
    /// A binding to a role, for nobody.
    pub(super) fn to(role_kind: &str, role_name: &str, namespace: &str) -> Self {
        Self {
            key: ObjectKey::new(namespace, ""),
            role_kind: role_kind.to_owned(),
            role_name: role_name.to_owned(),
            subjects: Vec::new(),
        }
    }

    fn read(key: ObjectKey, object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let subjects = object["subjects"].as_array().into_iter().flatten();
        Self {
            key,
            role_kind: text(&object["roleRef"]["kind"]),
            role_name: text(&object["roleRef"]["name"]),
            subjects: subjects
                .map(|subject| BoundSubject {
                    kind: text(&subject["kind"]),
                    name: text(&subject["name"]),
                    namespace: text(&subject["namespace"]),
                })
                .collect(),
        }
    }

    /// Whom a subject means; an account without a namespace is one of the binding's.
    fn resolve(&self, subject: &BoundSubject) -> Option<Subject> {
        match subject.kind.as_str() {
            "User" => Some(Subject::User(subject.name.clone())),
            "Group" => Some(Subject::Group(subject.name.clone())),
            "ServiceAccount" => {
                let namespace = self.namespace_of(subject);
                (!namespace.is_empty()).then(|| {
                    Subject::User(format!("system:serviceaccount:{namespace}:{}", subject.name))
                })
            }
            _ => None,
        }
    }

    fn namespace_of<'a>(&'a self, subject: &'a BoundSubject) -> &'a str {
        if subject.namespace.is_empty() { &self.key.namespace } else { &subject.namespace }
    }

    /// The binding in the words of reviews.
    pub(super) fn describe(&self, subject: &BoundSubject) -> String {
        let name = &self.key.name;
        let (kind, name) = if self.key.namespace.is_empty() {
            ("ClusterRoleBinding", name.to_string())
        } else {
            ("RoleBinding", format!("{name}/{}", self.key.namespace))
        };
        let whom = if subject.kind == "ServiceAccount" {
            format!("{}/{}", subject.name, self.namespace_of(subject))
        } else {
            subject.name.clone()
        };
        format!(
            "{kind} {name:?} of {} {:?} to {} {whom:?}",
            self.role_kind, self.role_name, subject.kind
        )
    }
}
