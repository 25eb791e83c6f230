//! The key of a cluster's controller, by which it recognizes the OperatorRevisions that it made: whoever may
//! create one could have anything applied otherwise.

use std::fmt;

use plimsoll_api::olm::{OperatorStatus, SIGNATURE_ANNOTATION};
use plimsoll_api::read_usable;
use plimsoll_content::hash::Hmac;
use serde_json::Value;

/// What is signed, so that a code is one of nothing else.
const PURPOSE: &str = "olm.io/v1 OperatorRevision";

/// The number of bytes of a key.
const LENGTH: usize = 32;

/// A key that signs OperatorRevisions.
#[derive(Clone)]
pub struct RevisionKey([u8; LENGTH]);

impl fmt::Debug for RevisionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RevisionKey")
    }
}

impl RevisionKey {
    /// The number of bytes of a key.
    pub const LENGTH: usize = LENGTH;

    /// Returns the key of some bytes.
    pub const fn new(bytes: [u8; LENGTH]) -> Self {
        Self(bytes)
    }

    /// Returns the signature of an OperatorRevision, by its name and spec. Neither the Operator's uid nor other
    /// metadata counts.
    pub fn signature(&self, name: &str, spec: &Value) -> String {
        let mut code = Hmac::new(&self.0);
        add_text(&mut code, PURPOSE);
        add_text(&mut code, name);
        add(&mut code, spec);
        code.finish()
    }

    /// Returns whether an OperatorRevision has the signature that belongs to its name and spec.
    pub fn has_signed(&self, name: &str, object: &Value) -> bool {
        let found = object["metadata"]["annotations"][SIGNATURE_ANNOTATION].as_str();
        found.is_some_and(|it| is_equal(it, &self.signature(name, &object["spec"])))
    }
}

/// Adds a value. What an API server returns is added as what was sent to it: it sorts the fields of objects, drops
/// some that are null, and writes whole numbers without a fraction.
fn add(code: &mut Hmac, value: &Value) {
    match value {
        Value::Null => code.update(b"n"),
        Value::Bool(value) => code.update(if *value { b"t" } else { b"f" }),
        Value::Number(number) => {
            code.update(b"d");
            // The sum has no negative zero.
            let number = number.as_f64().unwrap_or_default() + 0.0;
            code.update(&number.to_be_bytes());
        }
        Value::String(text) => {
            code.update(b"s");
            add_text(code, text);
        }
        Value::Array(items) => {
            code.update(b"a");
            add_length(code, items.len());
            items.iter().for_each(|it| add(code, it));
        }
        Value::Object(fields) => {
            code.update(b"o");
            let fields = || fields.iter().filter(|(_, value)| !value.is_null());
            add_length(code, fields().count());
            for (name, value) in fields() {
                add_text(code, name);
                add(code, value);
            }
        }
    }
}

fn add_text(code: &mut Hmac, text: &str) {
    add_length(code, text.len());
    code.update(text.as_bytes());
}

fn add_length(code: &mut Hmac, length: usize) {
    code.update(&(length as u64).to_be_bytes());
}

/// Compares texts in a time that does not depend on where they differ.
fn is_equal(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |found, (a, b)| found | (a ^ b));
    one.len() == other.len() && differences == 0
}

/// Returns whether an OperatorRevision without a valid signature is one that its Operator has had: the two belong
/// to each other, and the status of the Operator, which only the controller writes, names the revision and its
/// bundle.
///
/// That is all there is to go by when the key is new, on a cluster of an earlier version of this program or after
/// the key was lost.
pub fn is_recorded(operator: &Value, revision: &Value) -> bool {
    let uid = operator["metadata"]["uid"].as_str().unwrap_or_default();
    let owners = revision["metadata"]["ownerReferences"].as_array();
    let is_owned =
        owners.into_iter().flatten().any(|it| it["controller"] == true && it["uid"] == uid);
    let spec = &revision["spec"];
    if uid.is_empty() || !is_owned || spec["operator"] != operator["metadata"]["name"] {
        return false;
    }
    let status: OperatorStatus = read_usable(&operator["status"]);
    let number = spec["revision"].as_u64();
    let installed = status.revision.zip(status.bundle.map(|it| it.name));
    let history = status.history.into_iter().map(|it| (it.revision, it.bundle));
    let mut known = history.chain(installed);
    known.any(|(revision, bundle)| {
        number == Some(u64::from(revision)) && spec["bundle"]["name"] == bundle.as_str()
    })
}

#[cfg(test)]
mod tests;
