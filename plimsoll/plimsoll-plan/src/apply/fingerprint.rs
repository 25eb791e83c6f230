//! The cheap, exact sign of drift: a digest of the fields that are ours.
//!
//! An API server takes a field out of a manager's managedFields entry when another client changes
//! or removes it. So an entry that is as our last write left it means that all our fields still
//! have our values, without looking at any of them. Its time tells of a write under our own name
//! that was not ours: one of a process before this one that came late. Within the same second, only
//! values tell; those of labels and annotations are at hand.

use std::collections::BTreeMap;
use std::hash::Hasher;

use fnv::FnvHasher;
use serde_json::Value;

/// The field manager under which everything is applied.
pub const FIELD_MANAGER: &str = "plimsoll";

/// Digest of the `fieldsV1` of our managedFields entry, of its time in seconds since the epoch, and
/// of the labels and annotations that it names: the server keeps the time when a write changes
/// nothing. Versions do not count.
pub fn fingerprint(
    fields: &Value,
    time: i64,
    labels: Option<&BTreeMap<String, String>>,
    annotations: Option<&BTreeMap<String, String>>,
) -> u64 {
    let mut hasher = FnvHasher::default();
    digest(fields, &mut hasher);
    hasher.write_i64(time);
    for (field, values) in [("f:labels", labels), ("f:annotations", annotations)] {
        let owned = &fields["f:metadata"][field];
        for (name, value) in values.into_iter().flatten() {
            if owned.get(format!("f:{name}")).is_some() {
                hasher.write(name.as_bytes());
                hasher.write_u8(b'=');
                hasher.write(value.as_bytes());
            }
        }
    }
    hasher.finish()
}

fn digest(value: &Value, hasher: &mut FnvHasher) {
    match value {
        Value::Object(map) => {
            hasher.write_u8(b'{');
            for (key, value) in map {
                hasher.write(key.as_bytes());
                hasher.write_u8(b':');
                digest(value, hasher);
            }
            hasher.write_u8(b'}');
        }
        other => hasher.write(other.to_string().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    //! What a digest tells apart.

    use serde_json::json;

    use super::*;

    #[test]
    fn fields_times_and_our_own_labels_and_annotations_count() {
        let of = |fields: &Value, time, label: &str, annotation: &str| {
            let labels = BTreeMap::from([("a".to_owned(), label.to_owned())]);
            let annotations = BTreeMap::from([("b".to_owned(), annotation.to_owned())]);
            fingerprint(fields, time, Some(&labels), Some(&annotations))
        };
        let ours = json!({ "f:metadata": { "f:annotations": { "f:b": {} } }, "f:data": {} });
        let before = of(&ours, 1, "x", "1.0.0");
        assert_eq!(of(&ours, 1, "x", "1.0.0"), before);
        assert_eq!(of(&ours, 1, "another", "1.0.0"), before);
        assert_ne!(of(&ours, 1, "x", "1.1.0"), before);
        assert_ne!(of(&ours, 2, "x", "1.0.0"), before);
        assert_ne!(of(&json!({ "f:data": {} }), 1, "x", "1.0.0"), before);
    }
}
