//! apimachinery's rules for names, and for keys and values of labels, with its messages.
//!
//! Each function returns everything that is wrong with a text; nothing means that it is fine.
//!
//! Upstream: k8s.io/apimachinery/pkg/util/validation/validation.go: IsQualifiedName

/// Length limits in bytes.
const LABEL_LEN_MAX: usize = 63;
const SUBDOMAIN_LEN_MAX: usize = 253;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
'123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
characters, '-' or '.', and must start and end with an alphanumeric character (e.g. \
'example.com', regex used for validation is \
'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS \
subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an \
alphanumeric character (e.g. '*.example.com', regex used for validation is \
'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or \
'-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  \
or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const KEY_FORM: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used \
for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric \
characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
'MyValue',  or 'my_value',  or '12345', regex used for validation is \
'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or \
'.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
'[-._a-zA-Z0-9]+')";

const VARIABLE: &str = "a valid environment variable name must consist only of printable ASCII \
characters other than '='";

/// Keys and values of labels are measured in what their messages call bytes, names in characters;
/// both are bytes.
fn too_long(limit: usize, unit: &str) -> String {
    format!("must be no more than {limit} {unit}")
}

fn is_lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(first), Some(last)) if is_lower(*first) && is_lower(*last))
        && bytes.iter().all(|byte| is_lower(*byte) || *byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_mixed(text: &str) -> bool {
    let bytes = text.as_bytes();
    matches!((bytes.first(), bytes.last()), (Some(first), Some(last)) if first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn limited(text: &str, limit: usize, form: Option<&str>) -> Vec<String> {
    let length = (text.len() > limit).then(|| too_long(limit, "characters"));
    length.into_iter().chain(form.map(str::to_owned)).collect()
}

/// One label of a domain name: containers, namespaces, volumes.
///
/// Upstream: k8s.io/apimachinery/pkg/util/validation/validation.go: IsDNS1123Label
pub fn label(text: &str) -> Vec<String> {
    let form = match () {
        () if is_label(text) => None,
        () if is_subdomain(text) => Some("must not contain dots"),
        () => Some(LABEL),
    };
    limited(text, LABEL_LEN_MAX, form)
}

/// A domain name: most objects.
///
/// Upstream: k8s.io/apimachinery/pkg/util/validation/validation.go: IsDNS1123Subdomain
pub fn subdomain(text: &str) -> Vec<String> {
    limited(text, SUBDOMAIN_LEN_MAX, (!is_subdomain(text)).then_some(SUBDOMAIN))
}

/// A domain name whose first label is `*`.
///
/// Upstream: k8s.io/apimachinery/pkg/util/validation/validation.go: IsWildcardDNS1123Subdomain
pub fn wildcard_subdomain(text: &str) -> Vec<String> {
    let fits = text.strip_prefix("*.").is_some_and(is_subdomain);
    limited(text, SUBDOMAIN_LEN_MAX, (!fits).then_some(WILDCARD))
}

/// A label that begins with a letter: services, and the names of custom resources.
///
/// Upstream: k8s.io/apimachinery/pkg/util/validation/validation.go: IsDNS1035Label
pub fn label_1035(text: &str) -> Vec<String> {
    let fits = is_label(text) && text.starts_with(|first: char| first.is_ascii_lowercase());
    limited(text, LABEL_LEN_MAX, (!fits).then_some(LABEL_1035))
}

/// A key of labels and annotations, a finalizer: an optional domain and a name.
///
/// Upstream: k8s.io/apimachinery/pkg/api/validate/content/kube.go: IsLabelKey
pub fn qualified(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split('/').collect();
    let (prefix, name) = match parts.as_slice() {
        [name] => (None, *name),
        [prefix, name] => (Some(*prefix), *name),
        _ => {
            return vec![format!(
                "a valid label key {KEY_FORM} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    let mut problems = match prefix {
        None => Vec::new(),
        Some("") => vec!["prefix part must be non-empty".to_owned()],
        Some(prefix) => {
            let length =
                (prefix.len() > SUBDOMAIN_LEN_MAX).then(|| too_long(SUBDOMAIN_LEN_MAX, "bytes"));
            let form = (!is_subdomain(prefix)).then(|| SUBDOMAIN.to_owned());
            length.into_iter().chain(form).map(|problem| format!("prefix part {problem}")).collect()
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LEN_MAX {
        problems.push(format!("name part {}", too_long(LABEL_LEN_MAX, "bytes")));
    }
    if !is_mixed(name) {
        problems.push(format!("name part {KEY_FORM}"));
    }
    problems
}

/// The value of a label.
///
/// Upstream: k8s.io/apimachinery/pkg/api/validate/content/kube.go: IsLabelValue
pub fn label_value(text: &str) -> Vec<String> {
    let length = (text.len() > LABEL_LEN_MAX).then(|| too_long(LABEL_LEN_MAX, "bytes"));
    let fits = text.is_empty() || is_mixed(text);
    length.into_iter().chain((!fits).then(|| LABEL_VALUE.to_owned())).collect()
}

/// A name that only has to fit in a path: RBAC.
///
/// Upstream: k8s.io/apimachinery/pkg/api/validation/path/name.go: IsValidPathSegmentName
pub fn path_segment(text: &str) -> Vec<String> {
    if matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|part| text.contains(part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

/// A key of a ConfigMap or a Secret.
///
/// Upstream: k8s.io/apimachinery/pkg/util/validation/validation.go: IsConfigMapKey
pub fn config_key(text: &str) -> Vec<String> {
    let fits = !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    let mut problems = limited(text, SUBDOMAIN_LEN_MAX, (!fits).then_some(CONFIG_KEY));
    match text {
        "." => problems.push("must not be '.'".to_owned()),
        ".." => problems.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

/// The name of an environment variable.
///
/// Upstream: k8s.io/apimachinery/pkg/util/validation/validation.go: IsRelaxedEnvVarName
pub fn variable(text: &str) -> Vec<String> {
    if text.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    let fits = text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=');
    if fits { Vec::new() } else { vec![VARIABLE.to_owned()] }
}

/// The name of a port.
///
/// Upstream: k8s.io/apimachinery/pkg/util/validation/validation.go: IsValidPortName
pub fn port(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > 15 {
        problems.push("must be no more than 15 characters".to_owned());
    }
    let fits = text.bytes().all(|byte| is_lower(byte) || byte == b'-');
    if !fits {
        problems
            .push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".into());
    }
    if !text.bytes().any(|byte| byte.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        problems.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        problems.push("must not begin or end with a hyphen".to_owned());
    }
    problems
}

#[cfg(test)]
mod tests;
