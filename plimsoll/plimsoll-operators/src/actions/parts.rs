//! ActionParts: what is too large for the status of an Action, in pieces that the API server stores.

use plimsoll_api::olm::action::{PartContent, PartReference, PlannedChange};
use plimsoll_content::hash::text_sha256;

pub use crate::planned_change::{digest as plan_digest, without_progress};

/// The maximum length of one part as JSON, in bytes: an object in etcd has at most 1.5 MiB.
pub const PART_BYTES_MAX: usize = 512 * 1024;
/// The maximum length of a plan as JSON that a status has itself, in bytes. The other fields of the status and
/// `managedFields`, which name the fields of the plan once more, need room as well.
pub const STATUS_PLAN_BYTES_MAX: usize = 256 * 1024;

/// Returns a plan as the JSON that parts have; `None` if the status has room for it.
pub fn large_plan(changes: &[PlannedChange]) -> Option<String> {
    let text = serde_json::to_string(changes).expect("its keys are strings");
    (text.len() > STATUS_PLAN_BYTES_MAX).then_some(text)
}

/// Reads the plan that parts have.
///
/// # Errors
///
/// When the text is not a plan.
pub fn read_plan(text: &str) -> Result<Vec<PlannedChange>, String> {
    serde_json::from_str(text).map_err(|error| format!("the plan cannot be read: {error}"))
}

/// Returns a plan with the progress of those of its changes that have begun, which are in its order.
///
/// # Errors
///
/// When one of them is not in the plan.
pub fn with_progress(
    mut plan: Vec<PlannedChange>,
    begun: &[PlannedChange],
) -> Result<Vec<PlannedChange>, String> {
    let mut rest = plan.iter_mut();
    for it in begun {
        let is_same = |other: &&mut PlannedChange| {
            (&other.operator, &other.operation, &other.capability)
                == (&it.operator, &it.operation, &it.capability)
        };
        let Some(change) = rest.find(is_same) else {
            return Err(format!("a change of {} is not in the plan", it.subject()));
        };
        change.state = it.state;
        change.unwritten = it.unwritten;
        change.reason.clone_from(&it.reason);
        change.message.clone_from(&it.message);
    }
    Ok(plan)
}

/// Divides a text into parts, at least one.
pub fn split(text: &str) -> Vec<&str> {
    split_at(text, PART_BYTES_MAX)
}

fn split_at(text: &str, length_max: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut length) = (0, 0);
    for (at, letter) in text.char_indices() {
        let encoded = encoded_length(letter);
        if length + encoded > length_max && at > start {
            parts.push(&text[start..at]);
            (start, length) = (at, 0);
        }
        length += encoded;
    }
    parts.push(&text[start..]);
    parts
}

/// Returns the length of a character in a string of JSON, in bytes.
fn encoded_length(letter: char) -> usize {
    match letter {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        letter if letter.is_ascii_control() => 6,
        letter => letter.len_utf8(),
    }
}

/// Returns the reference to the parts of a text, which are called `name` with their position.
pub fn reference(name: &str, content: PartContent, text: &str) -> PartReference {
    PartReference {
        content,
        name: name.to_owned(),
        count: u32::try_from(split(text).len()).unwrap_or(u32::MAX),
        bytes: text.len() as u64,
        digest: text_sha256(text),
    }
}

/// Returns the name of the part at a position.
pub fn part_name(reference: &PartReference, index: u32) -> String {
    format!("{}-{index}", reference.name)
}

/// Joins the parts of a text, in order.
///
/// # Errors
///
/// When they are not those that the reference is about.
pub fn join<'a>(
    reference: &PartReference,
    parts: impl IntoIterator<Item = &'a str>,
) -> Result<String, String> {
    let PartReference { name, count, digest, .. } = reference;
    let (mut text, mut found) = (String::new(), 0);
    for part in parts {
        text.push_str(part);
        found += 1;
    }
    if found != *count {
        return Err(format!("{found} of {count} ActionParts {name} were found"));
    }
    if text_sha256(&text) != *digest {
        return Err(format!("the ActionParts {name} were changed: their digest is not {digest}"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
