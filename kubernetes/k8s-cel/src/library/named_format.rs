//! Named formats of text: `format.dns1123Label().validate(name)`.
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Opaque, Outcome, pattern, time, url};
use crate::Value;

/// A format that text can be checked against.
#[derive(Debug)]
pub struct NamedFormat {
    /// The name that `format.named` knows it by.
    pub(crate) name: &'static str,
    pattern_size: u64,
    check: fn(&str) -> Vec<String>,
}

impl NamedFormat {
    /// The size of the pattern that checking costs as much as.
    pub(crate) fn pattern_size(&self) -> u64 {
        self.pattern_size
    }
}

const LABEL_LENGTH_MAX: usize = 63;
const SUBDOMAIN_LENGTH_MAX: usize = 253;
const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const OLD_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const UUID: &str = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}";

static TABLE: [NamedFormat; 13] = [
    NamedFormat { name: "dns1123Label", pattern_size: 30, check: label },
    NamedFormat { name: "dns1123Subdomain", pattern_size: 60, check: subdomain },
    NamedFormat { name: "dns1035Label", pattern_size: 30, check: old_label },
    NamedFormat { name: "qualifiedName", pattern_size: 60, check: qualified_name },
    NamedFormat {
        name: "dns1123LabelPrefix",
        pattern_size: 30,
        check: |text| label(&without_dash(text)),
    },
    NamedFormat {
        name: "dns1123SubdomainPrefix",
        pattern_size: 60,
        check: |text| subdomain(&without_dash(text)),
    },
    NamedFormat {
        name: "dns1035LabelPrefix",
        pattern_size: 30,
        check: |text| old_label(&without_dash(text)),
    },
    NamedFormat { name: "labelValue", pattern_size: 40, check: label_value },
    NamedFormat {
        name: "uri",
        pattern_size: 1103,
        check: |text| url::parse(text).err().into_iter().collect(),
    },
    NamedFormat {
        name: "uuid",
        pattern_size: 72,
        check: |text| wrong_unless(matches(UUID, text), "does not match the UUID format"),
    },
    NamedFormat {
        name: "byte",
        pattern_size: 83,
        check: |text| {
            let valid = !text.is_empty() && STANDARD.decode(text).is_ok();
            wrong_unless(valid, "invalid base64")
        },
    },
    NamedFormat {
        name: "date",
        pattern_size: 72,
        check: |text| {
            let shape = text.len() == 10 && text.is_ascii();
            let valid = shape && time::parse_timestamp(&format!("{text}T00:00:00Z")).is_some();
            wrong_unless(valid, "invalid date")
        },
    },
    NamedFormat {
        name: "datetime",
        pattern_size: 72,
        check: |text| {
            let valid = time::parse_timestamp(&text.to_uppercase()).is_some();
            wrong_unless(valid, "invalid datetime")
        },
    },
];

pub(super) fn call(function: &str, arguments: &[Value]) -> Option<Outcome> {
    let find = |name: &str| TABLE.iter().find(|format| format.name == name);
    match (function, arguments) {
        ("format.named", [Value::String(name)]) => {
            let found = find(name).map(|format| Arc::new(Opaque::Format(format).into_value()));
            Some(Ok(Value::Optional(found)))
        }
        ("validate", [Value::Opaque(of), Value::String(text)]) => {
            let Opaque::Format(format) = &**of else { return None };
            let errors = (format.check)(text);
            if errors.is_empty() {
                return Some(Ok(Value::Optional(None)));
            }
            let errors = Value::list(errors.into_iter().map(Value::from).collect());
            Some(Ok(Value::Optional(Some(Arc::new(errors)))))
        }
        (_, []) => {
            let format = find(function.strip_prefix("format.")?)?;
            Some(Ok(Opaque::Format(format).into_value()))
        }
        _ => None,
    }
}

/// Whether text is a DNS label.
pub(super) fn is_label(text: &str) -> bool {
    label(text).is_empty()
}

/// Whether text is a DNS subdomain.
pub(super) fn is_subdomain(text: &str) -> bool {
    subdomain(text).is_empty()
}

fn wrong_unless(valid: bool, message: &str) -> Vec<String> {
    if valid { Vec::new() } else { vec![message.to_owned()] }
}

fn matches(expression: &str, text: &str) -> bool {
    pattern::compile(&format!("^(?:{expression})$"))
        .is_ok_and(|pattern| pattern.is_match(text) && !text.ends_with('\n'))
}

/// Prefixes of generated names may end with a dash.
fn without_dash(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a"),
        Some(_) | None => text.to_owned(),
    }
}

fn too_long(text: &str, most: usize) -> Option<String> {
    (text.len() > most).then(|| format!("must be no more than {most} bytes"))
}

fn label(text: &str) -> Vec<String> {
    let shape = if matches(LABEL, text) {
        None
    } else if matches(SUBDOMAIN, text) {
        Some("must not contain dots".to_owned())
    } else {
        Some(format!(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
             '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
             '123-abc', regex used for validation is '{LABEL}')"
        ))
    };
    too_long(text, LABEL_LENGTH_MAX).into_iter().chain(shape).collect()
}

fn subdomain(text: &str) -> Vec<String> {
    let shape = (!matches(SUBDOMAIN, text)).then(|| {
        format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is '{SUBDOMAIN}')"
        )
    });
    too_long(text, SUBDOMAIN_LENGTH_MAX).into_iter().chain(shape).collect()
}

fn old_label(text: &str) -> Vec<String> {
    let shape = (!matches(OLD_LABEL, text)).then(|| {
        format!(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character (e.g. \
             'my-name',  or 'abc-123', regex used for validation is '{OLD_LABEL}')"
        )
    });
    too_long(text, LABEL_LENGTH_MAX).into_iter().chain(shape).collect()
}

fn qualified_name(text: &str) -> Vec<String> {
    let shape = format!(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
         an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
         validation is '{NAME}')"
    );
    let parts: Vec<&str> = text.split('/').collect();
    let mut errors = Vec::new();
    let name = match parts.as_slice() {
        [name] => name,
        ["", name] => {
            errors.push("prefix part must be non-empty".to_owned());
            name
        }
        [prefix, name] => {
            errors
                .extend(subdomain(prefix).into_iter().map(|error| format!("prefix part {error}")));
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {shape} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if let Some(error) = too_long(name, LABEL_LENGTH_MAX) {
        errors.push(format!("name part {error}"));
    }
    if !matches(NAME, name) {
        errors.push(format!("name part {shape}"));
    }
    errors
}

fn label_value(text: &str) -> Vec<String> {
    let shape = (!matches(LABEL_VALUE, text)).then(|| {
        format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  \
             or 'my_value',  or '12345', regex used for validation is '{LABEL_VALUE}')"
        )
    });
    too_long(text, LABEL_LENGTH_MAX).into_iter().chain(shape).collect()
}
