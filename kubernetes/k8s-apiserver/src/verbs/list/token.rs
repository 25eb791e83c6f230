//! Continue tokens: the state of a list and its last object.
use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{NO_PAD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::status::{ApiError, Result};
use crate::storage::ObjectKey;

/// The encoding of tokens.
const VERSION: &str = "meta.k8s.io/v1";

/// The decoding of tokens; as in Go, unused bits may have any value.
const TOKENS: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// The revision in a token that continues with the present state.
const PRESENT: i64 = -1;

/// The content of a continue token.
#[derive(Clone, Debug)]
pub(super) struct ContinueToken {
    /// The revision of the list; none continues with the present state.
    pub(super) revision: Option<u64>,
    /// The key of the last object of the page.
    pub(super) after: ObjectKey,
    /// The number of objects after it; none if it is not known.
    pub(super) left: Option<usize>,
}

/// Writes a token.
///
/// Upstream: k8s.io/apiserver/pkg/storage/continue.go: EncodeContinue
pub(super) fn write(revision: Option<u64>, key: &ObjectKey, left: Option<usize>) -> String {
    let mut token = json!({
        "v": VERSION,
        "rv": revision.map_or(json!(PRESENT), Value::from),
        "start": format!("{}/{}\0", key.namespace, key.name),
    });
    if let Some(left) = left {
        token["left"] = left.into();
    }
    URL_SAFE_NO_PAD.encode(token.to_string())
}

/// Reads a token.
///
/// # Errors
/// When it is none of ours.
///
/// Upstream: k8s.io/apiserver/pkg/storage/continue.go: DecodeContinue
pub(super) fn read(text: &str) -> Result<ContinueToken> {
    let invalid = |why: String| {
        ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
    };
    let bytes = TOKENS.decode(text).map_err(|_| {
        let is_of_base64 =
            |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
        // Four characters encode three bytes; a single one encodes none.
        let at = text.find(|character| !is_of_base64(character)).unwrap_or(text.len() / 4 * 4);
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
    let revision = match token["rv"].as_i64() {
        Some(PRESENT) => None,
        _ => Some(token["rv"].as_u64().ok_or_else(malformed)?),
    };
    let left = token["left"].as_u64().and_then(|left| usize::try_from(left).ok());
    Ok(ContinueToken { revision, after: ObjectKey::new(namespace, name), left })
}
