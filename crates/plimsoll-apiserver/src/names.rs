//! What names, labels and annotations may look like.

/// What is wrong with a DNS label name is told with this.
const DNS_1123_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
'123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const DNS_1123_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
'example.com', regex used for validation is \
'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const DNS_1035_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters \
or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const QUALIFIED_NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', \
and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric \
characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
'MyValue',  or 'my_value',  or '12345', regex used for validation is \
'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Length limits of names.
const LABEL_LEN_MAX: usize = 63;
const SUBDOMAIN_LEN_MAX: usize = 253;

/// The rule that the names of a kind follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// Several labels with dots: most kinds.
    Subdomain,
    /// One label: namespaces.
    Label,
    /// One label that starts with a letter: services.
    Label1035,
    /// Anything that fits in a path: RBAC.
    PathSegment,
}

impl NameRule {
    /// The rule for a kind.
    pub(crate) fn of(group: &str, kind: &str) -> Self {
        match (group, kind) {
            ("", "Namespace") => Self::Label,
            ("rbac.authorization.k8s.io", _) => Self::PathSegment,
            ("", "Event") | ("events.k8s.io", "Event") => Self::Subdomain,
            _ => Self::Subdomain,
        }
    }

    /// What is wrong with a name.
    pub(crate) fn problem(self, name: &str) -> Option<String> {
        match self {
            Self::Subdomain => subdomain_problem(name),
            Self::Label => label_problem(name, DNS_1123_LABEL, |_| true),
            Self::Label1035 => {
                label_problem(name, DNS_1035_LABEL, |first| first.is_ascii_lowercase())
            }
            Self::PathSegment => match name {
                "." | ".." => Some(format!("may not be '{name}'")),
                _ => ["/", "%"]
                    .into_iter()
                    .find(|text| name.contains(text))
                    .map(|text| format!("may not contain '{text}'")),
            },
        }
    }
}

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

fn label_problem(name: &str, text: &str, first_is_fine: fn(u8) -> bool) -> Option<String> {
    if name.len() > LABEL_LEN_MAX {
        return Some(too_long(LABEL_LEN_MAX));
    }
    let bytes = name.as_bytes();
    (!is_label(bytes) || !bytes.first().copied().is_some_and(first_is_fine))
        .then(|| text.to_owned())
}

fn is_label(bytes: &[u8]) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            alphanumeric(*first)
                && alphanumeric(*last)
                && bytes.iter().all(|byte| alphanumeric(*byte) || *byte == b'-')
        }
        _ => false,
    }
}

/// What is wrong with a DNS subdomain.
pub(crate) fn subdomain_problem(name: &str) -> Option<String> {
    if name.len() > SUBDOMAIN_LEN_MAX {
        return Some(too_long(SUBDOMAIN_LEN_MAX));
    }
    (!name.split('.').all(|label| is_label(label.as_bytes())))
        .then(|| DNS_1123_SUBDOMAIN.to_owned())
}

/// Everything wrong with the name of a label, an annotation or a finalizer.
pub(crate) fn qualified_name_problems(key: &str) -> Vec<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if name.contains('/') {
        return vec![format!(
            "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. \
             'example.com/MyName')",
            QUALIFIED_NAME.trim_start_matches("name part ")
        )];
    }
    let mut problems = Vec::new();
    match prefix {
        Some("") => problems.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            problems.extend(subdomain_problem(prefix).map(|why| format!("prefix part {why}")));
        }
        None => {}
    }
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LEN_MAX {
        problems.push(format!("name part {}", too_long(LABEL_LEN_MAX)));
    }
    if !is_mixed_name(name) {
        problems.push(QUALIFIED_NAME.to_owned());
    }
    problems
}

/// All that is wrong with the key of a label, in one line.
pub(crate) fn label_key_problem(key: &str) -> Option<String> {
    let problems = qualified_name_problems(key);
    (!problems.is_empty()).then(|| problems.join("; "))
}

/// What is wrong with the value of a label.
pub(crate) fn label_value_problem(value: &str) -> Option<String> {
    if value.len() > LABEL_LEN_MAX {
        return Some(too_long(LABEL_LEN_MAX));
    }
    (!value.is_empty() && !is_mixed_name(value)).then(|| LABEL_VALUE.to_owned())
}

fn is_mixed_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            first.is_ascii_alphanumeric()
                && last.is_ascii_alphanumeric()
                && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule_of_their_kind() {
        let cases = [
            (NameRule::Subdomain, "a.b-c.d", true),
            (NameRule::Subdomain, "A", false),
            (NameRule::Subdomain, "a..b", false),
            (NameRule::Subdomain, "", false),
            (NameRule::Label, "a.b", false),
            (NameRule::Label, "0a", true),
            (NameRule::Label1035, "0a", false),
            (NameRule::PathSegment, "system:node", true),
            (NameRule::PathSegment, "a/b", false),
        ];
        for (rule, name, fine) in cases {
            assert_eq!(rule.problem(name).is_none(), fine, "{rule:?} {name}");
        }
    }

    #[test]
    fn keys_are_qualified_names() {
        for (key, fine) in [
            ("a", true),
            ("example.com/A_b.c", true),
            ("/a", false),
            ("a/", false),
            ("a/b/c", false),
            ("-a", false),
        ] {
            assert_eq!(qualified_name_problems(key).is_empty(), fine, "{key}");
        }
    }
}
