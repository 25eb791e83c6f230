//! The cheap, exact sign of drift: a digest of the fields that are ours.
//!
//! An API server takes a field out of a manager's managedFields entry when somebody else changes
//! or removes it. So an entry that is as our last write left it means that all our fields still
//! have our values, without looking at any of them. Its time tells of a write under our own name
//! that was not ours: one of a process before this one that came late.

use std::hash::Hasher;

use fnv::FnvHasher;
use serde_json::Value;

/// The field manager under which everything is applied.
pub const FIELD_MANAGER: &str = "plimsoll";

/// Digest of the `fieldsV1` of our managedFields entry and of its time, in seconds since the epoch:
/// the server keeps the time when a write changes nothing. Versions do not count.
pub fn fingerprint(fields: &Value, time: i64) -> u64 {
    let mut hasher = FnvHasher::default();
    digest(fields, &mut hasher);
    hasher.write_i64(time);
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
