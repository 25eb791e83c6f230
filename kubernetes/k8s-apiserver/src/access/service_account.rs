//! Service accounts: the claims in their tokens, and the users that these stand for.
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::semantics::cluster::Cluster;
use crate::storage::{ObjectKey, StorageId, Stored};
use crate::user::{AUTHENTICATED, UserInfo};

/// The issuer of tokens, and their default audience.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// How long a token stays valid after the object that it is bound to was deleted, in seconds: the
/// clocks of a cluster may differ by that much.
const LEEWAY: i64 = 60;

const PREFIX: &str = "system:serviceaccount:";

/// A reference to an object by name and uid; the uid may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectReference {
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// The claims of a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    pub(crate) namespace: String,
    pub(crate) account: ObjectReference,
    pub(crate) pod: Option<ObjectReference>,
    pub(crate) secret: Option<ObjectReference>,
    pub(crate) node: Option<ObjectReference>,
    pub(crate) audiences: Vec<String>,
    /// The time of issue, in seconds since 1970.
    pub(crate) issued: i64,
    /// The time of expiry, in seconds since 1970.
    pub(crate) expires: i64,
    /// The unique id of the token.
    pub(crate) id: String,
}

impl ObjectReference {
    /// A reference to a stored object.
    pub(crate) fn to(stored: &Stored) -> Self {
        Self { name: stored.key.name.to_string(), uid: stored.uid.to_string() }
    }

    fn to_value(&self) -> Value {
        let mut value = json!({"name": self.name});
        if !self.uid.is_empty() {
            value["uid"] = self.uid.as_str().into();
        }
        value
    }

    fn read(value: &Value) -> Option<Self> {
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        value.is_object().then(|| Self { name: text("name"), uid: text("uid") })
    }
}

impl Claims {
    /// The claims as the payload of a token.
    pub(crate) fn to_value(&self) -> Value {
        let mut bound = json!({
            "namespace": self.namespace,
            "serviceaccount": self.account.to_value(),
        });
        for (field, reference) in
            [("pod", &self.pod), ("secret", &self.secret), ("node", &self.node)]
        {
            if let Some(reference) = reference {
                bound[field] = reference.to_value();
            }
        }
        json!({
            "aud": self.audiences,
            "exp": self.expires,
            "iat": self.issued,
            "iss": ISSUER,
            "jti": self.id,
            "kubernetes.io": bound,
            "nbf": self.issued,
            "sub": username(&self.namespace, &self.account.name),
        })
    }

    /// Reads the payload of a token; missing claims are empty.
    pub(crate) fn read(value: &Value) -> Self {
        let bound = &value["kubernetes.io"];
        let audiences = value["aud"].as_array().into_iter().flatten();
        Self {
            namespace: bound["namespace"].as_str().unwrap_or_default().to_owned(),
            account: ObjectReference::read(&bound["serviceaccount"]).unwrap_or_default(),
            pod: ObjectReference::read(&bound["pod"]),
            secret: ObjectReference::read(&bound["secret"]),
            node: ObjectReference::read(&bound["node"]),
            audiences: audiences.filter_map(Value::as_str).map(str::to_owned).collect(),
            issued: value["iat"].as_i64().unwrap_or_default(),
            expires: value["exp"].as_i64().unwrap_or_default(),
            id: value["jti"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// The user of the token.
    ///
    /// # Errors
    /// When it has expired, or something that it is bound to is gone.
    pub(crate) fn user(&self, cluster: &Cluster, now: Timestamp) -> Result<UserInfo, String> {
        let seconds = now.as_second();
        if seconds > self.expires + LEEWAY {
            return Err("service account token has expired".to_owned());
        }
        if seconds < self.issued - LEEWAY {
            return Err("service account token is not valid yet".to_owned());
        }
        self.check_bound(cluster, now)?;
        let mut user = of_account(&self.namespace, &self.account.name);
        user.groups.push(AUTHENTICATED.to_owned());
        user.uid.clone_from(&self.account.uid);
        let mut extra = |key: &str, value: &str| {
            let key = format!("authentication.kubernetes.io/{key}");
            if !value.is_empty() {
                user.extra.insert(key, vec![value.to_owned()]);
            }
        };
        extra("credential-id", &format!("JTI={}", self.id));
        for (kind, reference) in [("node", &self.node), ("pod", &self.pod)] {
            if let Some(reference) = reference {
                extra(&format!("{kind}-name"), &reference.name);
                extra(&format!("{kind}-uid"), &reference.uid);
            }
        }
        Ok(user)
    }

    /// Upstream: k8s.io/kubernetes/pkg/serviceaccount/claims.go: Validate
    fn check_bound(&self, cluster: &Cluster, now: Timestamp) -> Result<(), String> {
        let find = |plural: &str, namespace: &str, name: &str| {
            cluster.store.find(&StorageId::new("", plural), &ObjectKey::new(namespace, name))
        };
        let ObjectReference { name, uid } = &self.account;
        let Some(account) = find("serviceaccounts", &self.namespace, name) else {
            return Err(format!("serviceaccounts {name:?} not found"));
        };
        if *account.uid != **uid {
            return Err(format!(
                "service account UID ({}) does not match claim ({uid})",
                account.uid
            ));
        }
        if is_long_gone(account, now) {
            return Err(format!("service account {}/{name} has been deleted", self.namespace));
        }
        // A token with a pod is bound to the pod; its node is only information.
        let node = self.node.as_ref().filter(|_| self.pod.is_none());
        for (noun, namespace, reference) in [
            ("pod", &*self.namespace, self.pod.as_ref()),
            ("secret", &self.namespace, self.secret.as_ref()),
            ("node", "", node),
        ] {
            let Some(ObjectReference { name, uid }) = reference else { continue };
            let found = find(&format!("{noun}s"), namespace, name)
                .filter(|found| !is_long_gone(found, now))
                .ok_or("service account token has been invalidated")?;
            if *found.uid != **uid {
                return Err(format!(
                    "{noun} UID ({}) does not match service account {noun} ref claim ({uid})",
                    found.uid
                ));
            }
        }
        Ok(())
    }
}

/// Whether an object was marked for deletion longer ago than the leeway.
fn is_long_gone(stored: &Stored, now: Timestamp) -> bool {
    if !stored.deleting {
        return false;
    }
    let object = stored.decode();
    let deleted = object["metadata"]["deletionTimestamp"].as_str();
    let deleted: Option<Timestamp> = deleted.and_then(|text| text.parse().ok());
    deleted.is_none_or(|deleted| deleted.as_second() < now.as_second() - LEEWAY)
}

/// The user name of a service account.
///
/// Upstream: k8s.io/apiserver/pkg/authentication/serviceaccount/util.go: MakeUsername
pub(crate) fn username(namespace: &str, name: &str) -> String {
    format!("{PREFIX}{namespace}:{name}")
}

/// The namespace and the name of the service account of a user name.
///
/// Upstream: k8s.io/apiserver/pkg/authentication/serviceaccount/util.go: SplitUsername
pub(crate) fn split(username: &str) -> Option<(&str, &str)> {
    let (namespace, name) = username.strip_prefix(PREFIX)?.split_once(':')?;
    let are_names = k8s_schema::names::subdomain(namespace).is_empty()
        && k8s_schema::names::subdomain(name).is_empty();
    are_names.then_some((namespace, name))
}

/// The user of a service account, without uid and without `system:authenticated`.
pub(crate) fn of_account(namespace: &str, name: &str) -> UserInfo {
    UserInfo::new(
        username(namespace, name),
        ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
    )
}
