//! The audit policy: how much of which request is recorded.
use serde::Deserialize;

use crate::access::attributes::{AuthorizationAttributes, ResourceAttributes};
use crate::user::UserInfo;

/// How much of a request is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum AuditLevel {
    /// Nothing.
    #[default]
    None,
    /// Metadata without bodies.
    Metadata,
    /// Also the body of the request.
    Request,
    /// Also the body of the response.
    RequestResponse,
}

/// The stage of a request at which an event is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum AuditStage {
    /// The request was received.
    RequestReceived,
    /// The response of a watch began.
    ResponseStarted,
    /// The response is complete.
    ResponseComplete,
    /// A panic; it only occurs in policies of kube-apiserver, never in events of this server.
    Panic,
}

/// The fields of a `Policy` of `audit.k8s.io/v1`, from which it can be deserialized.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AuditPolicy {
    /// The rules; the first that matches a request applies.
    pub rules: Vec<AuditRule>,
    /// Stages that are never recorded.
    pub omit_stages: Vec<AuditStage>,
}

/// A rule of an audit policy; empty fields match every request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AuditRule {
    /// How much is recorded.
    pub level: AuditLevel,
    /// User names.
    pub users: Vec<String>,
    /// Groups; the user has to be in one of them.
    pub user_groups: Vec<String>,
    /// Verbs, such as `get`.
    pub verbs: Vec<String>,
    /// Resources; a rule with resources does not match non-resource paths.
    pub resources: Vec<AuditGroup>,
    /// Namespaces; an empty one matches cluster-scoped resources.
    pub namespaces: Vec<String>,
    /// Non-resource paths, which may end in `*`; a rule with paths does not match resources.
    #[serde(rename = "nonResourceURLs")]
    pub non_resource_urls: Vec<String>,
    /// Stages that this rule does not record.
    pub omit_stages: Vec<AuditStage>,
}

/// Resources of one API group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AuditGroup {
    /// The API group; empty for the core group, `*` for all.
    pub group: String,
    /// `pods`, `pods/log`, `pods/*`, `*/scale` or `*`; empty for all.
    pub resources: Vec<String>,
    /// Names of objects; empty for all.
    pub resource_names: Vec<String>,
}

impl AuditPolicy {
    /// A policy that records every request at one level.
    pub fn everything(level: AuditLevel) -> Self {
        Self { rules: vec![AuditRule { level, ..AuditRule::default() }], ..Self::default() }
    }

    /// The level at which a request is recorded, and the stages that are omitted.
    ///
    /// Upstream: k8s.io/apiserver/pkg/audit/policy/checker.go: EvaluatePolicyRule
    pub(crate) fn judge(
        &self,
        user: &UserInfo,
        attributes: &AuthorizationAttributes<'_>,
    ) -> (AuditLevel, Vec<AuditStage>) {
        match self.rules.iter().find(|rule| rule.matches(user, attributes)) {
            Some(rule) => {
                (rule.level, self.omit_stages.iter().chain(&rule.omit_stages).copied().collect())
            }
            None => (AuditLevel::None, Vec::new()),
        }
    }
}

impl AuditRule {
    /// Upstream: k8s.io/apiserver/pkg/audit/policy/checker.go: ruleMatches
    fn matches(&self, user: &UserInfo, attributes: &AuthorizationAttributes<'_>) -> bool {
        let is_listed =
            |list: &[String], text: &str| list.is_empty() || list.iter().any(|one| one == text);
        let is_member =
            self.user_groups.is_empty() || self.user_groups.iter().any(|group| user.is_in(group));
        if !is_listed(&self.users, &user.username)
            || !is_member
            || !is_listed(&self.verbs, &attributes.verb)
        {
            return false;
        }
        if !self.resources.is_empty() || !self.namespaces.is_empty() {
            return attributes.resource.as_ref().is_some_and(|about| {
                let is_in = self.resources.is_empty()
                    || self.resources.iter().any(|group| group.matches(about));
                is_in && is_listed(&self.namespaces, about.namespace)
            });
        }
        self.non_resource_urls.is_empty()
            || attributes.resource.is_none()
                && self.non_resource_urls.iter().any(|url| {
                    let start = url.strip_suffix('*');
                    url == attributes.path
                        || start.is_some_and(|start| attributes.path.starts_with(start))
                })
    }
}

impl AuditGroup {
    fn matches(&self, about: &ResourceAttributes<'_>) -> bool {
        if self.group != about.group && self.group != "*" {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let is_named = self.resource_names.is_empty()
            || self.resource_names.iter().any(|name| *name == about.name);
        let combined = about.combined();
        is_named
            && self.resources.iter().any(|resource| {
                *resource == combined
                    || match resource.split_once('/') {
                        None => resource == "*",
                        Some((parent, "*")) => parent == about.resource,
                        Some(("*", sub)) => sub == about.subresource,
                        Some(_) => false,
                    }
            })
    }
}
