//! Continue tokens: which state a list goes on with, and after which object.
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::status::{ApiError, Result};
use crate::store::ObjectKey;

/// The encoding of tokens.
const VERSION: &str = "meta.k8s.io/v1";

pub(super) fn write(revision: u64, key: &ObjectKey) -> String {
    let token = json!({
        "v": VERSION,
        "rv": revision,
        "start": format!("{}/{}\0", key.namespace, key.name),
    });
    URL_SAFE_NO_PAD.encode(token.to_string())
}

/// Reads a token.
///
/// # Errors
/// When it is none of ours.
pub(super) fn read(text: &str) -> Result<(u64, ObjectKey)> {
    let invalid = |why: String| {
        ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
    };
    let text = text.trim_end_matches('=');
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| {
        let is_of_base64 =
            |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
        let at = text.find(|character| !is_of_base64(character)).unwrap_or(text.len());
        invalid(format!("illegal base64 data at input byte {at}"))
    })?;
    let token: Value = serde_json::from_slice(&bytes).map_err(|error| {
        let first = bytes.first().copied().map(char::from).unwrap_or_default();
        invalid(if error.is_eof() {
            "unexpected end of JSON input".to_owned()
        } else {
            format!("invalid character '{first}' looking for beginning of value")
        })
    })?;
    let version = token["v"].as_str().unwrap_or_default();
    if version != VERSION {
        return Err(invalid(format!("server does not recognize this encoded version {version}")));
    }
    let malformed =
        || invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)".to_owned());
    let (namespace, name) = token["start"]
        .as_str()
        .and_then(|start| start.trim_end_matches('\0').split_once('/'))
        .ok_or_else(malformed)?;
    let revision = token["rv"].as_u64().ok_or_else(malformed)?;
    Ok((revision, ObjectKey::new(namespace, name)))
}
