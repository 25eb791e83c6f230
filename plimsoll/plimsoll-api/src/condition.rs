//! Status conditions and how a new set of them is merged into what is there.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It is not known whether it holds.
    Unknown,
}

impl ConditionStatus {
    /// The status as the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// A time as the API has it: without fractions, which typed clients would drop.
pub fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// One observation about an object, in the shape of `config.openshift.io/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Name of the condition in CamelCase, such as `Available`.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: ConditionStatus,
    /// When `status` last changed; whole seconds.
    // +required
    #[serde(default = "epoch")]
    pub last_transition_time: Timestamp,
    /// CamelCase reason; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Text for people; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

fn epoch() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

/// The maximum length of a condition's message, in characters: API servers refuse longer ones.
pub const MESSAGE_LENGTH_MAX: usize = 32_768;
/// The length that is kept free for what is said of a message that is cut, in characters.
const CUT_LENGTH_MAX: usize = 48;

/// Returns a message as a condition may have it. A longer one is cut, and ends with how much was.
pub fn limited_message(message: String) -> String {
    // A character has one byte at least.
    if message.len() <= MESSAGE_LENGTH_MAX {
        return message;
    }
    let length = message.chars().count();
    if length <= MESSAGE_LENGTH_MAX {
        return message;
    }
    let kept = MESSAGE_LENGTH_MAX - CUT_LENGTH_MAX;
    let text: String = message.chars().take(kept).collect();
    format!("{text} ... and {} more characters", length - kept)
}

/// Merges `desired` over `current`: the result holds exactly the desired conditions, in their
/// order, each with the transition time of the current one unless its status changed, and with a message that
/// is not too long.
pub fn merge_conditions(current: &[Condition], desired: Vec<Condition>) -> Vec<Condition> {
    desired
        .into_iter()
        .map(|mut condition| {
            if let Some(before) = current.iter().find(|c| c.type_ == condition.type_)
                && before.status == condition.status
            {
                condition.last_transition_time = before.last_transition_time;
            }
            condition.message = limited_message(condition.message);
            condition
        })
        .collect()
}

#[cfg(test)]
mod tests;
