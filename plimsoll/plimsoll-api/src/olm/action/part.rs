//! ActionParts: what is too large for the status of an Action.

use serde::{Deserialize, Serialize};

/// Where the parts of an Action are. The text is that of `data` of the ActionParts
/// `NAME-0`, `NAME-1` and so on, in that order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PartReference {
    /// What they contain: `Plan`, as JSON, or `Result`, as text.
    // +required
    // +kubebuilder:validation:Enum=Plan;Result
    pub content: PartContent,
    /// The beginning of their names.
    // +required
    // +kubebuilder:validation:MaxLength=253
    pub name: String,
    /// Number of ActionParts.
    // +required
    // +kubebuilder:validation:Minimum=1
    pub count: u32,
    /// Length of the text, in bytes.
    // +required
    pub bytes: u64,
    /// SHA-256 digest of the text, as `sha256:HEX`.
    // +required
    pub digest: String,
}

/// The content of ActionParts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PartContent {
    /// The plan, as JSON.
    #[default]
    Plan,
    /// The answer to a query, as text.
    Result,
}

/// One part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionPartSpec {
    /// Name of the Action.
    // +required
    // +kubebuilder:validation:MaxLength=253
    pub action: String,
    /// Its position, from 0.
    // +required
    // +kubebuilder:validation:Minimum=0
    pub index: u32,
    /// The text of this part.
    // +required
    pub data: String,
}
