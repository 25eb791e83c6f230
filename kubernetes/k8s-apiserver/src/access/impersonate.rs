//! Impersonation: `Impersonate-User` and the related headers.
//!
//! The verb `impersonate` permits every request as another user. Newer and narrower are the
//! verbs `impersonate:MODE` and `impersonate-on:MODE:VERB`, which allow it for single verbs only;
//! they are tried first, so error messages name them.
//!
//! Upstream: k8s.io/apiserver/pkg/endpoints/filters/impersonation/impersonation.go: WithImpersonation
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use super::attributes::{AuthorizationAttributes, ResourceAttributes};
use super::rbac::Authorizer;
use super::refusal::forbidden;
use super::service_account;
use crate::semantics::cluster::Cluster;
use crate::status::ApiError;
use crate::user::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, UserInfo};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA_PREFIX: &str = "impersonate-extra-";

/// From this number of groups or values on, permission for all of them is checked first.
const MANY: usize = 4;

/// Number of users whose last mode is cached.
const REMEMBERED_MAX: usize = 10_000;

/// The modes of impersonation, in the order in which they are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ImpersonationMode {
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    Legacy,
}

const MODES: [ImpersonationMode; 5] = [
    ImpersonationMode::AssociatedNode,
    ImpersonationMode::ArbitraryNode,
    ImpersonationMode::ServiceAccount,
    ImpersonationMode::UserInfo,
    ImpersonationMode::Legacy,
];

/// The mode that each user last succeeded with: it is tried first, and its error is returned.
#[derive(Debug, Default)]
pub(crate) struct LastImpersonationModes(Mutex<BTreeMap<String, ImpersonationMode>>);

/// Whether a request has impersonation headers.
pub(crate) fn is_asked_for(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with("impersonate-"))
}

/// The user that the headers of a request ask to impersonate; none without such headers.
///
/// # Errors
/// When there are headers but no user name.
fn wanted(headers: &HeaderMap) -> Result<Option<UserInfo>, ApiError> {
    let text = |name: &str| {
        headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
    };
    let groups = headers.get_all(GROUP).iter();
    let groups: Vec<String> =
        groups.filter_map(|value| value.to_str().ok()).map(str::to_owned).collect();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) {
            let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
            let value = value.to_str().unwrap_or_default().to_owned();
            extra.entry(key).or_default().push(value);
        }
    }
    let user = UserInfo { username: text(USER), uid: text(UID), groups, extra };
    if !user.username.is_empty() {
        return Ok(Some(user));
    }
    if user == UserInfo::default() {
        return Ok(None);
    }
    Err(ApiError::bad_request(format!(
        "requested {} without impersonating a user name",
        go_syntax(&user)
    )))
}

/// A user in Go syntax, for the message about a missing name.
fn go_syntax(user: &UserInfo) -> String {
    let list = |texts: &[String]| {
        let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups =
        if user.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&user.groups) };
    let extra = if user.extra.is_empty() {
        "map[string][]string(nil)".to_owned()
    } else {
        let pairs: Vec<String> =
            user.extra.iter().map(|(key, values)| format!("{key:?}:{}", list(values))).collect();
        format!("map[string][]string{{{}}}", pairs.join(", "))
    };
    format!("&user.DefaultInfo{{Name:\"\", UID:{:?}, Groups:{groups}, Extra:{extra}}}", user.uid)
}

/// The impersonated user of a request; none if it does not impersonate.
///
/// # Errors
/// When impersonation is not permitted, or the headers have no user name.
pub(crate) fn impersonate(
    last: &LastImpersonationModes,
    authorizer: &Authorizer,
    cluster: &Cluster,
    requestor: &UserInfo,
    attributes: &AuthorizationAttributes<'_>,
    headers: &HeaderMap,
) -> Result<Option<UserInfo>, ApiError> {
    let Some(wanted) = wanted(headers)? else {
        return Ok(None);
    };
    let attempt = ImpersonationAttempt { authorizer, cluster, requestor, wanted: &wanted };
    let first = last.find(&requestor.username);
    let others = MODES.into_iter().filter(|mode| Some(*mode) != first);
    let mut refusal = None;
    for mode in first.into_iter().chain(others) {
        if !attempt.applies(mode) {
            continue;
        }
        match attempt.run(mode, attributes) {
            Ok(user) => {
                last.remember(&requestor.username, mode);
                return Ok(Some(user));
            }
            Err(error) => {
                refusal.get_or_insert(error);
            }
        }
    }
    Err(refusal.unwrap_or_else(|| ApiError::internal("all impersonation modes failed")))
}

impl LastImpersonationModes {
    fn find(&self, username: &str) -> Option<ImpersonationMode> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(username).copied()
    }

    fn remember(&self, username: &str, mode: ImpersonationMode) {
        let mut modes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if modes.len() < REMEMBERED_MAX || modes.contains_key(username) {
            modes.insert(username.to_owned(), mode);
        }
    }
}

/// An attempt of a user to impersonate another.
struct ImpersonationAttempt<'a> {
    authorizer: &'a Authorizer,
    cluster: &'a Cluster,
    requestor: &'a UserInfo,
    wanted: &'a UserInfo,
}

impl ImpersonationAttempt<'_> {
    fn applies(&self, mode: ImpersonationMode) -> bool {
        let wanted = self.wanted;
        let only_name =
            wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node_name(&wanted.username);
        let is_account = service_account::split(&wanted.username).is_some();
        match mode {
            ImpersonationMode::AssociatedNode => {
                let own = self.requestor.extra.get("authentication.kubernetes.io/node-name");
                let own = own.and_then(|names| match names.as_slice() {
                    [one] => Some(one.as_str()),
                    _ => None,
                });
                only_name
                    && node.is_some()
                    && node == own
                    && service_account::split(&self.requestor.username).is_some()
            }
            ImpersonationMode::ArbitraryNode => only_name && node.is_some(),
            ImpersonationMode::ServiceAccount => only_name && is_account,
            ImpersonationMode::UserInfo => node.is_none() && !is_account,
            ImpersonationMode::Legacy => true,
        }
    }

    fn run(
        &self,
        mode: ImpersonationMode,
        attributes: &AuthorizationAttributes<'_>,
    ) -> Result<UserInfo, ApiError> {
        if let Some(name) = mode.name() {
            let verb = format!("impersonate-on:{name}:{}", attributes.verb);
            self.require(&AuthorizationAttributes { verb: verb.into(), ..attributes.clone() })?;
        }
        let mut user = self.wanted.clone();
        self.require_name(mode, &mut user)?;
        if !self.wanted.uid.is_empty() {
            self.require_to_be(mode, "authentication.k8s.io", "uids", "", &self.wanted.uid)?;
        }
        self.require_groups(mode)?;
        self.require_extra(mode)?;
        let everybody = if user.username == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
        if !user.is_in(UNAUTHENTICATED) && !user.is_in(everybody) {
            user.groups.push(everybody.to_owned());
        }
        Ok(user)
    }

    fn require(&self, attributes: &AuthorizationAttributes<'_>) -> Result<(), ApiError> {
        let decision = self.authorizer.authorize(self.cluster, self.requestor, attributes);
        if decision.allowed {
            return Ok(());
        }
        Err(forbidden(self.requestor, attributes, &decision.reason))
    }

    fn require_to_be(
        &self,
        mode: ImpersonationMode,
        group: &str,
        resource: &str,
        subresource: &str,
        name: &str,
    ) -> Result<(), ApiError> {
        let about = ResourceAttributes {
            group,
            resource,
            subresource,
            name: name.into(),
            ..Default::default()
        };
        self.require(&AuthorizationAttributes::on(mode.verb(), about))
    }

    fn require_name(&self, mode: ImpersonationMode, user: &mut UserInfo) -> Result<(), ApiError> {
        let username = &self.wanted.username;
        let mut about = ResourceAttributes {
            group: mode.identity_group(),
            resource: "users",
            name: username.into(),
            ..Default::default()
        };
        match node_name(username) {
            Some(node) if mode != ImpersonationMode::Legacy => {
                about.resource = "nodes";
                about.name =
                    if mode == ImpersonationMode::AssociatedNode { "*" } else { node }.into();
                user.groups = vec!["system:nodes".to_owned()];
            }
            _ => {}
        }
        if let Some((namespace, name)) = service_account::split(username) {
            about.resource = "serviceaccounts";
            about.namespace = namespace;
            about.name = name.into();
            if user.groups.is_empty() {
                user.groups = service_account::of_account(namespace, name).groups;
            }
        }
        self.require(&AuthorizationAttributes::on(mode.verb(), about))
    }

    fn require_groups(&self, mode: ImpersonationMode) -> Result<(), ApiError> {
        let groups = &self.wanted.groups;
        let group = mode.identity_group();
        if mode != ImpersonationMode::Legacy {
            for (refused, why) in [
                ("", "impersonating the empty string group is not allowed"),
                (MASTERS, "impersonating the system:masters group is not allowed"),
            ] {
                if groups.iter().any(|found| found == refused) {
                    let about = ResourceAttributes {
                        group,
                        resource: "groups",
                        name: refused.into(),
                        ..Default::default()
                    };
                    let attributes = AuthorizationAttributes::on(mode.verb(), about);
                    return Err(forbidden(self.requestor, &attributes, why));
                }
            }
            if groups.len() >= MANY && self.require_to_be(mode, group, "groups", "", "*").is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|name| self.require_to_be(mode, group, "groups", "", name))
    }

    fn require_extra(&self, mode: ImpersonationMode) -> Result<(), ApiError> {
        const API_GROUP: &str = "authentication.k8s.io";
        let extra = &self.wanted.extra;
        let count: usize = extra.values().map(Vec::len).sum();
        if mode != ImpersonationMode::Legacy {
            if let Some(why) = problem_of_extra(extra) {
                let about = ResourceAttributes {
                    group: API_GROUP,
                    resource: "userextras",
                    ..Default::default()
                };
                return Err(forbidden(
                    self.requestor,
                    &AuthorizationAttributes::on(mode.verb(), about),
                    &why,
                ));
            }
            let is_allowed = |attempt: &Self| {
                attempt.require_to_be(mode, API_GROUP, "userextras", "*", "*").is_ok()
            };
            if count >= MANY && is_allowed(self) {
                return Ok(());
            }
        }
        extra.iter().try_for_each(|(key, values)| {
            values
                .iter()
                .try_for_each(|value| self.require_to_be(mode, API_GROUP, "userextras", key, value))
        })
    }
}

impl ImpersonationMode {
    /// The name of the mode in verbs; none for the verb `impersonate` itself.
    fn name(self) -> Option<&'static str> {
        match self {
            Self::AssociatedNode => Some("associated-node"),
            Self::ArbitraryNode => Some("arbitrary-node"),
            Self::ServiceAccount => Some("serviceaccount"),
            Self::UserInfo => Some("user-info"),
            Self::Legacy => None,
        }
    }

    fn verb(self) -> String {
        match self.name() {
            Some(name) => format!("impersonate:{name}"),
            None => "impersonate".to_owned(),
        }
    }

    /// The API group that users and groups are in.
    fn identity_group(self) -> &'static str {
        if self == Self::Legacy { "" } else { "authentication.k8s.io" }
    }
}

fn node_name(username: &str) -> Option<&str> {
    let name = username.strip_prefix("system:node:")?;
    k8s_schema::names::subdomain(name).is_empty().then_some(name)
}

fn problem_of_extra(extra: &BTreeMap<String, Vec<String>>) -> Option<String> {
    extra.iter().find_map(|(key, values)| {
        if key.is_empty() {
            Some("impersonating the empty string key in extra is not allowed".to_owned())
        } else if !is_path(key) {
            Some(format!(
                "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: \
                 {key:?}: must be a domain-prefixed path (such as \"acme.io/foo\")"
            ))
        } else if values.iter().any(String::is_empty) {
            Some("impersonating the empty string value in extra is not allowed".to_owned())
        } else {
            None
        }
    })
}

/// Whether a key is a domain and a path in it.
fn is_path(key: &str) -> bool {
    key.split_once('/').is_some_and(|(domain, path)| {
        k8s_schema::names::subdomain(domain).is_empty() && !path.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::rbac::quoted;

    fn check(headers: &[(&str, &str)], expected: &str) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: http::HeaderName = name.parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        let shown = match wanted(&map) {
            Ok(None) => "-".to_owned(),
            Ok(Some(user)) => {
                format!("{} {} {} {:?}", user.username, user.uid, quoted(&user.groups), user.extra)
            }
            Err(error) => error.message,
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn headers_say_whom_to_act_as() {
        check(&[], "-");
        check(&[("Impersonate-User", "bob")], "bob  [] {}");
        check(
            &[
                ("Impersonate-User", "bob"),
                ("Impersonate-Uid", "7"),
                ("Impersonate-Group", "a"),
                ("Impersonate-Group", "b"),
                ("Impersonate-Extra-Acme.com%2fProject", "x"),
                ("Impersonate-Extra-Acme.com%2fProject", "y"),
            ],
            r#"bob 7 ["a" "b"] {"acme.com/project": ["x", "y"]}"#,
        );
        check(
            &[("Impersonate-Group", "devs")],
            r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"devs"}, Extra:map[string][]string(nil)} without impersonating a user name"#,
        );
        check(
            &[("Impersonate-Extra-Scopes", "a")],
            r#"requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string{"scopes":[]string{"a"}}} without impersonating a user name"#,
        );
    }
}
