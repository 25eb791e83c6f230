//! The rules of roles: what they allow, and which other rules they cover.
use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::access::attributes::{AuthorizationAttributes, ResourceAttributes};

const ALL: &str = "*";

/// A `PolicyRule`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rule {
    pub(crate) verbs: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) resources: Vec<String>,
    pub(crate) names: Vec<String>,
    pub(crate) urls: Vec<String>,
}

impl Rule {
    /// All rules of a role object.
    pub(crate) fn all_of(role: &Value) -> Vec<Self> {
        role["rules"].as_array().into_iter().flatten().map(Self::read).collect()
    }

    /// The rules that allow everything.
    pub(crate) fn everything() -> [Self; 2] {
        let all = || vec![ALL.to_owned()];
        [
            Self { verbs: all(), groups: all(), resources: all(), ..Self::default() },
            Self { verbs: all(), urls: all(), ..Self::default() },
        ]
    }

    fn read(value: &Value) -> Self {
        let texts = |field: &str| -> Vec<String> {
            let list = value[field].as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            urls: texts("nonResourceURLs"),
        }
    }

    /// The rule in the status of a rules review, without empty fields.
    pub(crate) fn to_value(&self, of_urls: bool) -> Value {
        let fields: &[(&str, &Vec<String>)] = if of_urls {
            &[("verbs", &self.verbs), ("nonResourceURLs", &self.urls)]
        } else {
            &[
                ("verbs", &self.verbs),
                ("apiGroups", &self.groups),
                ("resources", &self.resources),
                ("resourceNames", &self.names),
            ]
        };
        let filled = fields.iter().filter(|(_, texts)| !texts.is_empty());
        let map: Map<String, Value> =
            filled.map(|(name, texts)| ((*name).to_owned(), (*texts).clone().into())).collect();
        Value::Object(map)
    }

    /// Whether it allows a request with these attributes.
    ///
    /// Upstream: k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/rbac.go: RuleAllows
    pub(crate) fn allows(&self, attributes: &AuthorizationAttributes<'_>) -> bool {
        has(&self.verbs, ALL, &attributes.verb)
            && match &attributes.resource {
                Some(about) => self.allows_resource(about),
                None => self.urls.iter().any(|url| url_covers(url, attributes.path)),
            }
    }

    fn allows_resource(&self, about: &ResourceAttributes<'_>) -> bool {
        let is_named = self.names.is_empty() || self.names.iter().any(|name| *name == about.name);
        is_named
            && has(&self.groups, ALL, about.group)
            && resource_covers(&self.resources, &about.combined())
    }

    /// Breaks the rule down into rules of one verb, one resource and one name each.
    ///
    /// Upstream: k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go: BreakdownRule
    fn broken_down(&self) -> Vec<Self> {
        let mut parts = Vec::new();
        let one = |text: &String| vec![text.clone()];
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let part = Self {
                        verbs: one(verb),
                        groups: one(group),
                        resources: one(resource),
                        ..Self::default()
                    };
                    if self.names.is_empty() {
                        parts.push(part);
                    } else {
                        let named = |name| Self { names: one(name), ..part.clone() };
                        parts.extend(self.names.iter().map(named));
                    }
                }
            }
        }
        for url in &self.urls {
            let of_url = |verb| Self { verbs: one(verb), urls: one(url), ..Self::default() };
            parts.extend(self.verbs.iter().map(of_url));
        }
        parts
    }

    /// Whether it allows everything that the broken-down rule `part` allows.
    ///
    /// Upstream: k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go: ruleCovers
    fn covers(&self, part: &Self) -> bool {
        let all = |have: &[String], want: &[String]| want.iter().all(|text| has(have, ALL, text));
        let are_named = if part.names.is_empty() {
            self.names.is_empty()
        } else {
            self.names.is_empty() || part.names.iter().all(|name| self.names.contains(name))
        };
        are_named
            && all(&self.verbs, &part.verbs)
            && all(&self.groups, &part.groups)
            && part.resources.iter().all(|resource| resource_covers(&self.resources, resource))
            && part.urls.iter().all(|url| self.urls.iter().any(|have| url_covers(have, url)))
    }

    /// The key of a simple rule, which is about one resource and at most one name.
    fn simple_key(&self) -> Option<(String, String, Option<String>)> {
        match (self.groups.as_slice(), self.resources.as_slice(), self.names.as_slice()) {
            ([group], [resource], [] | [_]) if self.urls.is_empty() => {
                Some((group.clone(), resource.clone(), self.names.first().cloned()))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Rule {
    /// The short form in messages about privilege escalation.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let filled: Vec<String> = fields
            .iter()
            .filter(|(_, texts)| !texts.is_empty())
            .map(|(name, texts)| format!("{name}:{}", quoted(texts)))
            .collect();
        write!(out, "{{{}}}", filled.join(", "))
    }
}

/// A list of strings as Go prints it: `["a" "b"]`.
pub(crate) fn quoted(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    format!("[{}]", quoted.join(" "))
}

/// The broken-down parts of `wanted` that the rules in `held` do not cover.
///
/// Upstream: k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go: Covers
pub(crate) fn uncovered(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    wanted
        .iter()
        .flat_map(Rule::broken_down)
        .filter(|part| !held.iter().any(|rule| rule.covers(part)))
        .collect()
}

/// Merges rules about the same resource.
///
/// Upstream: k8s.io/kubernetes/pkg/registry/rbac/validation/policy_compact.go: CompactRules
pub(crate) fn compact(rules: Vec<Rule>) -> Vec<Rule> {
    let mut others = Vec::new();
    let mut simple: BTreeMap<_, Rule> = BTreeMap::new();
    for rule in rules {
        match rule.simple_key() {
            Some(key) => match simple.entry(key) {
                std::collections::btree_map::Entry::Occupied(mut found) => {
                    found.get_mut().verbs.extend(rule.verbs);
                }
                std::collections::btree_map::Entry::Vacant(place) => {
                    place.insert(rule);
                }
            },
            None => others.push(rule),
        }
    }
    others.extend(simple.into_values());
    others
}

fn has(texts: &[String], all: &str, wanted: &str) -> bool {
    texts.iter().any(|text| text == all || text == wanted)
}

/// Whether one of `resources` is `*`, the wanted one, or `*/` and its subresource.
///
/// Upstream: k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go: ruleCovers
fn resource_covers(resources: &[String], wanted: &str) -> bool {
    resources.iter().any(|resource| {
        resource == ALL
            || resource == wanted
            || match (resource.strip_prefix("*/"), wanted.split_once('/')) {
                (Some(have), Some((_, subresource))) => have == subresource,
                _ => false,
            }
    })
}

/// Whether a URL of a rule, which may end in `*`, covers a path or another such URL.
///
/// Upstream: k8s.io/component-helpers/auth/rbac/validation/policy_comparator.go: nonResourceURLCovers
fn url_covers(have: &str, wanted: &str) -> bool {
    have == wanted || (have.ends_with('*') && wanted.starts_with(have.trim_end_matches('*')))
}
