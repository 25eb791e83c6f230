//! The rules that the names of objects follow.
use crate::names;

/// The rule that the names of a kind follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// Several labels with dots: most kinds.
    Subdomain,
    /// One label: namespaces and services.
    Label,
    /// Anything that fits in a path: RBAC.
    PathSegment,
}

impl NameRule {
    /// The rule for a kind.
    pub fn of(group: &str, kind: &str) -> Self {
        match (group, kind) {
            ("", "Namespace" | "Service") | ("apps", "StatefulSet") => Self::Label,
            ("rbac.authorization.k8s.io", _) | ("apiregistration.k8s.io", _) => Self::PathSegment,
            _ => Self::Subdomain,
        }
    }

    /// The function that returns the errors of a name.
    pub fn problems(self) -> fn(&str) -> Vec<String> {
        match self {
            Self::Subdomain => names::subdomain,
            Self::Label => names::label,
            Self::PathSegment => names::path_segment,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule_of_their_kind() {
        for (group, kind, name, fine) in [
            ("", "ConfigMap", "a.b-c.d", true),
            ("", "ConfigMap", "A", false),
            ("", "Namespace", "a.b", false),
            ("rbac.authorization.k8s.io", "Role", "system:node", true),
            ("rbac.authorization.k8s.io", "Role", "a/b", false),
        ] {
            let problems = NameRule::of(group, kind).problems()(name);
            assert_eq!(problems.is_empty(), fine, "{kind} {name}");
        }
    }
}
