//! ConfigMaps, Secrets and Namespaces.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::check::{error, invalid, items, problems, required, text};
use crate::names::{config_key, qualified};
use crate::{FieldError, FieldErrorKind};

/// The limit for the data of a ConfigMap or a Secret, in bytes.
const DATA_LEN_MAX: usize = 1024 * 1024;

fn entries<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a str)> {
    let map = object[field].as_object();
    map.into_iter().flatten().map(|(key, value)| (key, value.as_str().unwrap_or_default()))
}

fn decoded_len(text: &str) -> usize {
    let padding = text.len() - text.trim_end_matches('=').len();
    text.len() / 4 * 3 - padding.min(2)
}

fn too_long(path: &str) -> FieldError {
    let detail = format!("may not be more than {DATA_LEN_MAX} bytes");
    error(path, FieldErrorKind::TooLong, &detail)
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateConfigMap
pub(super) fn config_map(object: &Value, _path: &str, errors: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in entries(object, "data") {
        let at = format!("data[{key}]");
        problems(&at, &key.as_str().into(), config_key(key), errors);
        if !object["binaryData"][key].is_null() {
            let detail = "duplicate of key present in binaryData";
            errors.push(invalid(at, &key.as_str().into(), detail));
        }
        size += value.len();
    }
    for (key, value) in entries(object, "binaryData") {
        let at = format!("binaryData[{key}]");
        problems(&at, &key.as_str().into(), config_key(key), errors);
        size += decoded_len(value);
    }
    if size > DATA_LEN_MAX {
        errors.push(too_long("[]"));
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: ValidateSecret
pub(super) fn secret(object: &Value, _path: &str, errors: &mut Vec<FieldError>) {
    let mut size = 0;
    for (key, value) in entries(object, "data") {
        problems(&format!("data[{key}]"), &key.as_str().into(), config_key(key), errors);
        size += decoded_len(value);
    }
    if size > DATA_LEN_MAX {
        errors.push(too_long("data"));
    }
    let missing = |key: &str| object["data"][key].is_null();
    let mut needs = |keys: &[&str]| {
        let absent = keys.iter().filter(|key| missing(key));
        errors.extend(absent.map(|key| required(format!("data[{key}]"), "")));
    };
    match text(object, "type") {
        "kubernetes.io/service-account-token" => {
            const ACCOUNT: &str = "kubernetes.io/service-account.name";
            if text(&object["metadata"]["annotations"], ACCOUNT).is_empty() {
                errors.push(required(format!("metadata.annotations[{ACCOUNT}]"), ""));
            }
        }
        "kubernetes.io/dockercfg" => json_data(object, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => json_data(object, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if missing("username") && missing("password") => {
            needs(&["username", "password"]);
        }
        "kubernetes.io/ssh-auth" => needs(&["ssh-privatekey"]),
        "kubernetes.io/tls" => needs(&["tls.crt", "tls.key"]),
        _ => {}
    }
}

/// Checks that the data under a key is JSON.
fn json_data(object: &Value, key: &str, errors: &mut Vec<FieldError>) {
    let at = format!("data[{key}]");
    let Some(data) = object["data"][key].as_str() else {
        return errors.push(required(at, ""));
    };
    let bytes = STANDARD.decode(data).unwrap_or_default();
    if serde_json::from_slice::<Value>(&bytes).is_ok() {
        return;
    }
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    let detail = match first {
        None => "unexpected end of JSON input".to_owned(),
        Some(b't' | b'f' | b'n') => misspelt_word(bytes.trim_ascii_start()),
        Some(byte) if b"{[\"-0123456789".contains(byte) => {
            "unexpected end of JSON input".to_owned()
        }
        Some(byte) => {
            format!("invalid character '{}' looking for beginning of value", char::from(*byte))
        }
    };
    errors.push(invalid(at, &"<secret contents redacted>".into(), &detail));
}

/// The message of Go's decoder for bytes that begin like `true`, `false` or `null`.
fn misspelt_word(bytes: &[u8]) -> String {
    let words = ["true", "false", "null"];
    let word = words.into_iter().find(|word| bytes.first() == word.as_bytes().first());
    let word = word.unwrap_or_default();
    match bytes.iter().zip(word.bytes()).find(|(given, wanted)| *given != wanted) {
        Some((given, wanted)) => format!(
            "invalid character '{}' in literal {word} (expecting '{}')",
            char::from(*given),
            char::from(wanted)
        ),
        None if bytes.len() < word.len() => "unexpected end of JSON input".to_owned(),
        None => {
            let next = bytes.get(word.len()).copied().unwrap_or(b' ');
            format!("invalid character '{}' after top-level value", char::from(next))
        }
    }
}

/// Upstream: k8s.io/kubernetes/pkg/apis/core/validation/validation.go: validateFinalizerName
pub(super) fn finalizers(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let at = format!("{path}.finalizers");
    for finalizer in items(spec, "finalizers") {
        let name = finalizer.as_str().unwrap_or_default();
        let found = qualified(name);
        let is_plain = found.is_empty() && !name.contains('/');
        problems(&at, finalizer, found, errors);
        if is_plain && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(invalid(&at, finalizer, detail));
        }
    }
}
