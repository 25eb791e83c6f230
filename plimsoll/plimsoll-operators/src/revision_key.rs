//! The key of a cluster's controller, by which it recognizes the OperatorRevisions that it made: whoever may
//! create one could have anything applied otherwise.

use std::fmt;

use plimsoll_api::olm::{OperatorStatus, SIGNATURE_ANNOTATION};
use plimsoll_api::read_usable;
use plimsoll_content::hash::Hmac;
use serde_json::Value;

/// What is signed, so that a code is one of nothing else.
const PURPOSE: &str = "olm.io/v1 OperatorRevision of an Operator";
/// What earlier versions of this program signed, without an Operator.
const EARLIER_PURPOSE: &str = "olm.io/v1 OperatorRevision";
/// What a mark signs.
const MARK: &str = "plimsoll-revisions";

/// The number of bytes of a key.
const LENGTH: usize = 32;

/// What the signature of an OperatorRevision proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provenance {
    /// The controller made it for the Operator with a uid.
    Of(String),
    /// An earlier version of this program made it, for an Operator of its name.
    Earlier,
    /// Nothing: another client made or changed it, or it has the signature of another key.
    Unknown,
}

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

    /// Returns the signature of an OperatorRevision that is made for the Operator with a uid. Other metadata than
    /// the name does not count.
    pub fn signature(&self, name: &str, owner: &str, spec: &Value) -> String {
        format!("{owner}/{}", self.code(&[PURPOSE, owner, name], spec))
    }

    /// Returns what the signature of an OperatorRevision proves.
    pub fn provenance(&self, name: &str, object: &Value) -> Provenance {
        let found = object["metadata"]["annotations"][SIGNATURE_ANNOTATION].as_str();
        let (found, spec) = (found.unwrap_or_default(), &object["spec"]);
        match found.split_once('/') {
            Some((owner, _)) if is_equal(found, &self.signature(name, owner, spec)) => {
                Provenance::Of(owner.to_owned())
            }
            None if is_equal(found, &self.code(&[EARLIER_PURPOSE, name], spec)) => {
                Provenance::Earlier
            }
            _ => Provenance::Unknown,
        }
    }

    /// Returns whether an OperatorRevision without a signature for an Operator is signed for this one, at the first
    /// start with a key or of this version of the program. `is_signed_earlier` says whether an earlier version has
    /// signed all of its own with the key.
    pub fn is_taken_over(
        &self,
        operator: &Value,
        name: &str,
        revision: &Value,
        is_signed_earlier: bool,
    ) -> bool {
        match self.provenance(name, revision) {
            Provenance::Of(_) => false,
            // It counted until now, also if the history is too short to name it or its rollout has not begun.
            Provenance::Earlier => is_of(operator, revision),
            Provenance::Unknown => !is_signed_earlier && is_recorded(operator, revision),
        }
    }

    /// Returns what says of a cluster that its OperatorRevisions have signatures of this key.
    pub fn mark(&self) -> String {
        self.code(&[PURPOSE, MARK], &Value::Null)
    }

    /// Returns the mark of earlier versions of this program.
    pub fn earlier_mark(&self) -> String {
        self.code(&[EARLIER_PURPOSE, MARK], &Value::Null)
    }

    fn code(&self, texts: &[&str], value: &Value) -> String {
        let mut code = Hmac::new(&self.0);
        texts.iter().for_each(|it| add_text(&mut code, it));
        add(&mut code, value);
        code.finish()
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

/// Returns whether an OperatorRevision and an Operator belong to each other: it names the Operator, which controls
/// it.
fn is_of(operator: &Value, revision: &Value) -> bool {
    let uid = operator["metadata"]["uid"].as_str().unwrap_or_default();
    let owners = revision["metadata"]["ownerReferences"].as_array();
    let is_owned =
        owners.into_iter().flatten().any(|it| it["controller"] == true && it["uid"] == uid);
    !uid.is_empty() && is_owned && revision["spec"]["operator"] == operator["metadata"]["name"]
}

/// Returns whether an OperatorRevision without a valid signature is one that its Operator has had: the two belong
/// to each other, and the status of the Operator, which only the controller writes, names the revision and its
/// bundle.
///
/// That is all there is to go by when the key is new, on a cluster of an earlier version of this program or after
/// the key was lost.
fn is_recorded(operator: &Value, revision: &Value) -> bool {
    if !is_of(operator, revision) {
        return false;
    }
    let spec = &revision["spec"];
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
