//! JSON texts.
use bytes::Bytes;
use serde::Serialize;

/// Encodes a document whose keys are all strings.
pub(crate) fn to_bytes(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).expect("a document with string keys always encodes").into()
}
