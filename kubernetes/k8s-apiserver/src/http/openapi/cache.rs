//! A cache of built documents, valid as long as the schemas in them do not change.
//!
//! Clients request documents often, and building one takes as long as a hundred writes.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;

use crate::http::encode::digest;
use crate::http::respond;

/// A built document and its digest.
#[derive(Debug)]
pub(super) struct BuiltDocument {
    pub(super) text: Bytes,
    pub(super) digest: String,
    /// The compressed text, made on the first use; none if compression fails.
    gzip: OnceLock<Option<Bytes>>,
}

impl BuiltDocument {
    fn new(text: Bytes) -> Self {
        let digest = digest(&text);
        Self { text, digest, gzip: OnceLock::new() }
    }

    /// The compressed text; none if compression fails.
    pub(super) fn gzip(&self) -> Option<&Bytes> {
        self.gzip.get_or_init(|| respond::compress(&self.text)).as_ref()
    }
}

/// The built documents of a cluster, by name.
#[derive(Debug, Default)]
pub(crate) struct DocumentCache(Mutex<BTreeMap<String, CachedDocument>>);

/// The ids of the schemas in a document, and the document.
type CachedDocument = (Vec<u64>, Arc<BuiltDocument>);

impl DocumentCache {
    /// The document of a name, from the cache if it was built from the same schemas.
    pub(super) fn find(
        &self,
        name: &str,
        schema_ids: Vec<u64>,
        build: impl FnOnce() -> Option<Bytes>,
    ) -> Option<Arc<BuiltDocument>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some((_, built)) = known.filter(|(of, _)| *of == schema_ids) {
            return Some(built);
        }
        let built = Arc::new(BuiltDocument::new(build()?));
        let kept = (schema_ids, Arc::clone(&built));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), kept);
        Some(built)
    }

    /// Drops the documents whose names are not wanted.
    pub(super) fn retain(&self, is_wanted: impl Fn(&str) -> bool) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|name, _| is_wanted(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_built_once_for_each_state_of_its_schemas() {
        let kept = DocumentCache::default();
        let find = |schema_ids: &[u64], text: &'static str| {
            let built =
                kept.find("a", schema_ids.to_vec(), || Some(Bytes::from_static(text.as_bytes())));
            built.map(|built| String::from_utf8_lossy(&built.text).into_owned())
        };
        for (schema_ids, text, expected) in [
            (&[1, 2][..], "first", "first"),
            (&[1, 2], "not built", "first"),
            (&[1, 3], "second", "second"),
            (&[], "third", "third"),
        ] {
            assert_eq!(find(schema_ids, text).as_deref(), Some(expected), "{schema_ids:?}");
        }
        kept.retain(|name| name != "a");
        assert_eq!(find(&[], "again").as_deref(), Some("again"));
        assert!(kept.find("none", Vec::new(), || None).is_none());
    }
}
