//! Named formats of text: `format.dns1123Label().validate(name)`.
//!
//! Upstream: k8s.io/apiserver/pkg/cel/library/format.go: Format
//! Upstream: k8s.io/apiserver/pkg/cel/format.go: Format
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{EvaluationResult, url};
use crate::Value;
use crate::go::regexp;
use crate::names;
use crate::value::opaque::{NamedFormat, Opaque};
use crate::value::time;

const UUID: &str = "(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}";

static TABLE: [NamedFormat; 13] = [
    NamedFormat { name: "dns1123Label", pattern_size: 30, check: names::label },
    NamedFormat { name: "dns1123Subdomain", pattern_size: 60, check: names::subdomain },
    NamedFormat { name: "dns1035Label", pattern_size: 30, check: names::label_1035 },
    NamedFormat { name: "qualifiedName", pattern_size: 60, check: names::qualified },
    NamedFormat {
        name: "dns1123LabelPrefix",
        pattern_size: 30,
        check: |text| names::label(&mask_trailing_dash(text)),
    },
    NamedFormat {
        name: "dns1123SubdomainPrefix",
        pattern_size: 60,
        check: |text| names::subdomain(&mask_trailing_dash(text)),
    },
    NamedFormat {
        name: "dns1035LabelPrefix",
        pattern_size: 30,
        check: |text| names::label_1035(&mask_trailing_dash(text)),
    },
    NamedFormat { name: "labelValue", pattern_size: 40, check: names::label_value },
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

pub(super) fn call(function: &str, arguments: &[Value]) -> Option<EvaluationResult> {
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

fn wrong_unless(valid: bool, message: &str) -> Vec<String> {
    if valid { Vec::new() } else { vec![message.to_owned()] }
}

fn matches(expression: &str, text: &str) -> bool {
    regexp::compile(&format!("^(?:{expression})$"))
        .is_ok_and(|pattern| pattern.is_match(text) && !text.ends_with('\n'))
}

/// The name that a prefix of generated names is checked as: it may end with a dash.
///
/// Upstream: k8s.io/apimachinery/pkg/api/validation/generic.go: maskTrailingDash
fn mask_trailing_dash(text: &str) -> String {
    match text.char_indices().nth_back(1) {
        Some((before, _)) if text.ends_with('-') => format!("{}a", &text[..before]),
        Some(_) | None => text.to_owned(),
    }
}
