//! The rules that the names of built-in kinds follow.
use k8s_schema::names;

/// The rule that the names of a kind follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// Several labels with dots: most kinds.
    Subdomain,
    /// One label: namespaces and services.
    Label,
    /// Anything that fits in a path: RBAC.
    PathSegment,
}

impl NameRule {
    /// The rule for a kind.
    pub(crate) fn of(group: &str, kind: &str) -> Self {
        match (group, kind) {
            ("", "Namespace" | "Service") | ("apps", "StatefulSet") => Self::Label,
            ("rbac.authorization.k8s.io", _) | ("apiregistration.k8s.io", _) => Self::PathSegment,
            _ => Self::Subdomain,
        }
    }

    /// The function that returns the errors of a name.
    pub(crate) fn problems(self) -> fn(&str) -> Vec<String> {
        match self {
            Self::Subdomain => names::subdomain,
            Self::Label => names::label,
            Self::PathSegment => names::path_segment,
        }
    }
}

/// What is wrong with a label or annotation key.
pub(crate) fn qualified_name_problem(key: &str) -> Option<String> {
    let problems = names::qualified(key);
    (!problems.is_empty()).then(|| problems.join("; "))
}

/// What is wrong with the value of a label.
pub(crate) fn label_value_problem(value: &str) -> Option<String> {
    let problems = names::label_value(value);
    (!problems.is_empty()).then(|| problems.join("; "))
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
