//! Actions: requests for a single change, decided by what is requested, what policies grant and the state of
//! the cluster (OPR-23 to OPR-25).
//!
//! An Action is planned, checked against policies and preconditions, and executed as planned. Its whole state
//! is in its status, so that a new leader continues where the previous one stopped.

pub mod approvals;
pub mod attributes;
pub mod by_hand;
pub mod check;
pub mod classes;
pub mod execution;
pub mod files;
pub mod history;
pub mod lifecycle;
pub mod locks;
mod outcome;
pub mod parts;
pub mod permissions;
pub mod plan;
pub mod planning;
pub mod policy;
pub mod preconditions;
pub mod release;
pub mod report;
pub mod retry;
pub mod subjects;
pub mod triggers;

use std::fmt::Write as _;

use plimsoll_api::Reason;
use plimsoll_content::hash::sha256;

/// The reason that an Action fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionFailure {
    /// The reason that conditions report.
    pub reason: Reason,
    /// What is wrong, and what resolves it.
    pub message: String,
    /// The answer to a query as a terminal shows it; `None` if that is the message.
    pub answer: Option<String>,
    /// The name of the precondition that a plan violates; `None` if it violates none.
    pub precondition: Option<&'static str>,
    /// The Operator, `release` or the capability that it failed on; `None` for the request itself.
    pub item: Option<String>,
}

impl ActionFailure {
    /// Creates a failure with a message.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), answer: None, precondition: None, item: None }
    }

    /// Returns the failure with the Operator, `release` or the capability that it failed on.
    pub fn on(self, item: impl Into<String>) -> Self {
        Self { item: Some(item.into()), ..self }
    }

    /// Returns the answer to a query that failed.
    pub fn answer(&self) -> &str {
        self.answer.as_deref().unwrap_or(&self.message)
    }
}

/// Returns whether a name matches a pattern, which may end in `*`.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

/// The maximum length of a text in a status, such as the message of a condition, in bytes. Kubernetes accepts 32 KiB,
/// and the status has many of them.
const TEXT_LENGTH_MAX: usize = 4 * 1024;
/// The maximum length of the name of a created object, which is that of a label value.
const NAME_LENGTH_MAX: usize = 63;
/// The characters of name suffixes: no vowels, so that they form no words.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// The number of characters in a name suffix.
const LETTERS_COUNT: u32 = 5;

/// Returns the name of an object that is created for another one: the name of the owner and a suffix derived
/// from `parts`.
fn derived_name(owner: &str, parts: &[&str]) -> String {
    let digest = sha256(parts.iter().map(|it| it.as_bytes()));
    let digits = digest.trim_start_matches("sha256:").get(..15).unwrap_or_default();
    let mut number = u64::from_str_radix(digits, 16).unwrap_or_default();
    let mut name = with_room(owner, LETTERS_COUNT as usize + 1);
    name.push('-');
    for _ in 0..LETTERS_COUNT {
        let at = usize::try_from(number % LETTERS.len() as u64).unwrap_or_default();
        name.push(char::from(LETTERS[at]));
        number /= LETTERS.len() as u64;
    }
    name
}

/// Returns the value of the label that has the name of what created an Action: the name, or, since values are
/// shorter than names may be, one derived from it.
pub fn owner_label(owner: &str) -> String {
    match owner.len() <= NAME_LENGTH_MAX {
        true => owner.to_owned(),
        false => derived_name(owner, &[owner]),
    }
}

/// Returns the name of an Action instead of one that is taken: `collisions` names are.
pub fn name_after_collisions(name: &str, uid: &str, collisions: u32) -> String {
    match collisions {
        0 => name.to_owned(),
        _ => derived_name(name, &[name, uid, &collisions.to_string()]),
    }
}

/// Truncates a name so that a suffix of some length fits.
fn with_room(name: &str, length: usize) -> String {
    let end = name.len().min(NAME_LENGTH_MAX - length);
    name.get(..end).unwrap_or(name).trim_end_matches(['-', '.']).to_owned()
}

/// Truncates a text to about a number of bytes; one that is truncated ends with `…`.
fn cut(text: &str, length_max: usize) -> String {
    match text.len() <= length_max {
        true => text.to_owned(),
        false => format!("{}…", &text[..text.floor_char_boundary(length_max)]),
    }
}

/// Joins texts to an enumeration: `a, b and c`.
fn enumerated(texts: &[String]) -> String {
    let mut text = String::new();
    for (at, it) in texts.iter().enumerate() {
        let joint = match at {
            0 => "",
            at if at + 1 == texts.len() => " and ",
            _ => ", ",
        };
        // Writing to a string does not fail.
        let _ = write!(text, "{joint}{it}");
    }
    text
}

#[cfg(test)]
mod tests;
