//! From objects at rest to the bytes of answers.
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha512};

use crate::convert;
use crate::registry::{ApiResource, Origin};
use crate::request::accept::View;
use crate::store::Stored;
use crate::verbs::list::Listing;

/// Encodes a document of ours.
pub(crate) fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).expect("a document with string keys always encodes").into()
}

/// Tells one document from another: SHA-512, in hexadecimal.
pub(crate) fn digest(text: &[u8]) -> String {
    let digest = Sha512::digest(text);
    digest.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Encodes a document for people.
pub(crate) fn indented(value: &Value) -> Bytes {
    serde_json::to_vec_pretty(value).expect("a JSON value with string keys always encodes").into()
}

/// What of an object its metadata views show.
#[derive(Deserialize)]
struct MetadataOnly<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
}

/// Appends one object with its `kind` and `apiVersion`.
pub(crate) fn object(out: &mut Vec<u8>, resource: &ApiResource, stored: &Stored, view: View) {
    let body = convert::read_bytes(resource, stored);
    match view {
        View::Full | View::Table => {
            typed(out, &resource.kind, &resource.api_version());
            // The body is an object with at least its metadata: its brace becomes a comma.
            out.push(b',');
            out.extend_from_slice(&body[1..]);
        }
        View::Metadata => {
            typed(out, "PartialObjectMetadata", "meta.k8s.io/v1");
            out.extend_from_slice(b",\"metadata\":");
            out.extend_from_slice(metadata(&body).as_bytes());
            out.push(b'}');
        }
    }
}

/// The encoded metadata of an encoded object.
fn metadata(body: &[u8]) -> &str {
    serde_json::from_slice::<MetadataOnly<'_>>(body).map(|read| read.metadata.get()).unwrap_or("{}")
}

fn typed(out: &mut Vec<u8>, kind: &str, api_version: &str) {
    out.extend_from_slice(b"{\"kind\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"apiVersion\":\"");
    out.extend_from_slice(api_version.as_bytes());
    out.push(b'"');
}

/// Encodes a list.
pub(crate) fn list(resource: &ApiResource, listing: &Listing, view: View) -> Bytes {
    let size: usize = listing.items.iter().map(|stored| stored.bytes().len() + 64).sum();
    let mut out = Vec::with_capacity(size + 256);
    match view {
        View::Full | View::Table => typed(&mut out, &resource.list_kind, &resource.api_version()),
        View::Metadata => typed(&mut out, "PartialObjectMetadataList", "meta.k8s.io/v1"),
    }
    out.extend_from_slice(b",\"metadata\":");
    let mut metadata = list_metadata(listing);
    if resource.custom().is_some() && view == View::Full && listing.rest.is_none() {
        // Lists of custom objects say that there is nothing left.
        metadata["continue"] = "".into();
    }
    out.extend_from_slice(&json(&metadata));
    if view == View::Metadata && listing.items.is_empty() {
        // A list of metadata without items is the one that says so.
        out.extend_from_slice(b",\"items\":null}");
        return out.into();
    }
    out.extend_from_slice(b",\"items\":[");
    for (index, stored) in listing.items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match (&resource.origin, view) {
            // Items of built-in lists do not repeat their type.
            (Origin::BuiltIn, View::Full) => {
                out.extend_from_slice(&convert::read_bytes(resource, stored));
            }
            _ => object(&mut out, resource, stored, view),
        }
    }
    out.extend_from_slice(b"]}");
    out.into()
}

/// The metadata of a list.
pub(crate) fn list_metadata(listing: &Listing) -> Value {
    let mut metadata = serde_json::json!({"resourceVersion": listing.revision.to_string()});
    if let Some((token, left)) = &listing.rest {
        metadata["continue"] = token.clone().into();
        if let Some(left) = left {
            metadata["remainingItemCount"] = (*left).into();
        }
    }
    metadata
}

/// Turns a whole object into its metadata view.
pub(crate) fn metadata_view(object: &Value) -> Value {
    serde_json::json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}
