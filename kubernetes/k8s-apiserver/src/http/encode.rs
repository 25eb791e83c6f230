//! Encoding of stored objects as the bodies of responses.
use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha512};

use crate::json::to_bytes;
use crate::request::accept::{MetaVersion, View};
use crate::semantics::convert;
use crate::semantics::registry::{ApiResource, ResourceOrigin};
use crate::storage::{ListPage, Stored};

/// The digest of a document: SHA-512, in hexadecimal.
pub(crate) fn digest(text: &[u8]) -> String {
    let digest = Sha512::digest(text);
    digest.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// The part of an encoded object that metadata views need.
#[derive(Deserialize)]
struct MetadataOnly<'a> {
    #[serde(borrow)]
    metadata: &'a RawValue,
}

/// Appends one object with its `kind` and `apiVersion`.
pub(crate) fn object(out: &mut Vec<u8>, resource: &ApiResource, stored: &Stored, view: View) {
    let body = convert::read_bytes(resource, stored);
    match view {
        View::Full | View::Table(_) => {
            typed(out, &resource.kind, &resource.api_version());
            // The body is an object that is not empty: a comma replaces its first brace.
            out.push(b',');
            out.extend_from_slice(&body[1..]);
        }
        View::Metadata(version) => {
            typed(out, "PartialObjectMetadata", version.api_version());
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
pub(crate) fn list(resource: &ApiResource, listing: &ListPage, view: View) -> Bytes {
    let mut out = Vec::with_capacity(list_len(listing));
    begin_list(&mut out, resource, listing, view);
    if matches!(view, View::Metadata(_)) && listing.items.is_empty() {
        // Only empty lists of metadata have null items.
        out.extend_from_slice(b"null}");
        return out.into();
    }
    out.push(b'[');
    for index in 0..listing.items.len() {
        item(&mut out, resource, listing, view, index);
    }
    out.extend_from_slice(b"]}");
    out.into()
}

/// The approximate length of an encoded list, in bytes.
pub(crate) fn list_len(listing: &ListPage) -> usize {
    listing.items.iter().map(|stored| stored.bytes().len() + 64).sum::<usize>() + 256
}

fn begin_list(out: &mut Vec<u8>, resource: &ApiResource, listing: &ListPage, view: View) {
    match view {
        View::Full | View::Table(_) => typed(out, &resource.list_kind, &resource.api_version()),
        View::Metadata(version) => typed(out, "PartialObjectMetadataList", version.api_version()),
    }
    out.extend_from_slice(b",\"metadata\":");
    let mut metadata = list_metadata(listing);
    if resource.custom().is_some() && view == View::Full && listing.rest.is_none() {
        // The last page of custom objects has an empty continue token.
        metadata["continue"] = "".into();
    }
    out.extend_from_slice(&to_bytes(&metadata));
    out.extend_from_slice(b",\"items\":");
}

fn item(out: &mut Vec<u8>, resource: &ApiResource, listing: &ListPage, view: View, index: usize) {
    let Some(stored) = listing.items.get(index) else { return };
    if index > 0 {
        out.push(b',');
    }
    match (&resource.origin, view) {
        // Items of built-in lists do not repeat their type.
        (ResourceOrigin::BuiltIn, View::Full) => {
            out.extend_from_slice(&convert::read_bytes(resource, stored));
        }
        _ => object(out, resource, stored, view),
    }
}

/// Length of a piece of a long list, in bytes: small enough for allocations without page faults.
const PIECE_LEN: usize = 64 << 10;

/// Encodes a list of whole objects piece by piece while it is read: allocating all of it at once
/// would take longer than encoding it. Also returns the total length in bytes.
///
/// # Errors
/// With the list itself, when its objects have to be converted first.
pub(crate) fn list_pieces(
    resource: Arc<ApiResource>,
    listing: ListPage,
) -> Result<(usize, impl Iterator<Item = Bytes> + Send), ListPage> {
    if !listing.items.iter().all(|stored| convert::is_verbatim(&resource, stored)) {
        return Err(listing);
    }
    let mut first = Vec::with_capacity(PIECE_LEN + PIECE_LEN / 4);
    begin_list(&mut first, &resource, &listing, View::Full);
    first.push(b'[');
    let mut prefix = Vec::new();
    if let ResourceOrigin::Custom(_) = resource.origin {
        typed(&mut prefix, &resource.kind, &resource.api_version());
    }
    let items = listing.items.iter().map(|stored| prefix.len() + stored.bytes().len());
    let commas = listing.items.len().saturating_sub(1);
    let length = first.len() + items.sum::<usize>() + commas + b"]}".len();
    let mut next = 0;
    let pieces = std::iter::from_fn(move || {
        let count = listing.items.len();
        if next > count {
            return None;
        }
        let mut out = std::mem::take(&mut first);
        out.reserve(PIECE_LEN + PIECE_LEN / 4);
        while next < count && out.len() < PIECE_LEN {
            item(&mut out, &resource, &listing, View::Full, next);
            next += 1;
        }
        if next == count {
            out.extend_from_slice(b"]}");
            next += 1;
        }
        Some(out.into())
    });
    Ok((length, pieces))
}

/// The metadata of a list.
///
/// Upstream: k8s.io/apiserver/pkg/registry/generic/registry/store.go: ListPredicate
pub(crate) fn list_metadata(listing: &ListPage) -> Value {
    let mut metadata = serde_json::json!({"resourceVersion": listing.revision.to_string()});
    if let Some((token, left)) = &listing.rest {
        metadata["continue"] = token.clone().into();
        if let Some(left) = left {
            metadata["remainingItemCount"] = (*left).into();
        }
    }
    metadata
}

/// The metadata view of an object.
///
/// Upstream: k8s.io/apimachinery/pkg/api/meta/meta.go: AsPartialObjectMetadata
pub(crate) fn metadata_view(object: &Value, version: MetaVersion) -> Value {
    serde_json::json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": version.api_version(),
        "metadata": object["metadata"],
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::semantics::registry::Registry;
    use crate::storage::ObjectKey;

    #[test]
    fn the_pieces_of_a_list_are_the_list() {
        let registry = Registry::new();
        let resource = registry.find("", "v1", "configmaps").expect("it is built in");
        for count in [0, 1, 200, 1_000] {
            let items = (0..count).map(|index| {
                let mut value = json!({"metadata": {"name": format!("m-{index}")},
                    "data": {"filling": "x".repeat(index)}});
                Arc::new(Stored::new(ObjectKey::new("a", ""), &mut value, 1, 0))
            });
            let listing = ListPage { revision: 7, items: items.collect(), rest: None };
            let whole = list(resource, &listing, View::Full);
            let (length, pieces) = list_pieces(Arc::clone(resource), listing).expect("as it is");
            let pieces: Vec<Bytes> = pieces.collect();
            assert_eq!(pieces.len() > 1, count == 1_000, "{count}");
            assert_eq!((length, pieces.concat()), (whole.len(), whole.to_vec()), "{count}");
        }
    }
}
