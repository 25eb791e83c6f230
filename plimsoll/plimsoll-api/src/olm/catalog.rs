//! Catalogs: where Operators come from.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::MetaCondition;

/// Where the content of a catalog is, and how much it is preferred.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CatalogSpec {
    /// Where the content is.
    // +required
    // +kubebuilder:validation:XValidation:rule="self.type == 'ImageLayout' || !has(self.reference)
    //  || self.reference == ''",
    //  message="only an image layout has a reference: remove it, or set type to ImageLayout"
    pub source: CatalogSource,
    /// Rank among catalogs that have the same package: lower values are preferred.
    pub weight: i64,
    /// Whether Operators are resolved from it: `Available` or `Unavailable`.
    // +kubebuilder:validation:Enum=Available;Unavailable
    pub availability: CatalogAvailability,
    /// How often the source is looked at for new content, such as `10m`; empty for once a minute.
    // +kubebuilder:validation:MaxLength=32
    // +kubebuilder:validation:Pattern=`^(([0-9]+h)?([0-9]+m)?([0-9]+s)?)$`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub poll_interval: String,
}

/// Where the content of a catalog is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CatalogSource {
    /// `Directory` for a directory that the controller can read, such as a mounted image volume;
    /// `ImageLayout` for an OCI image layout in such a directory.
    // +required
    // +kubebuilder:validation:Enum=Directory;ImageLayout
    #[serde(rename = "type")]
    pub type_: CatalogSourceType,
    /// Absolute path of the directory.
    // +required
    // +kubebuilder:validation:MaxLength=4096
    // +kubebuilder:validation:XValidation:rule="self.startsWith('/')",
    //  message="must be an absolute path: begin it with /"
    pub path: String,
    /// Tag or digest of the image in the layout; empty for the only one.
    // +kubebuilder:validation:MaxLength=512
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reference: String,
}

/// The form of a catalog's source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CatalogSourceType {
    /// A directory of catalog files, or a tree of bundles.
    #[default]
    Directory,
    /// An OCI image layout.
    ImageLayout,
}

/// Whether Operators are resolved from a catalog.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CatalogAvailability {
    /// They are.
    #[default]
    Available,
    /// They are not.
    Unavailable,
}

/// The state of a catalog, as the controller read it last.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CatalogStatus {
    /// Generation of the spec that this status was computed from.
    // +required
    pub observed_generation: i64,
    /// Serving, whether Operators are resolved from it; Progressing, whether it is being read.
    // +listType=map
    // +listMapKey=type
    pub conditions: Vec<MetaCondition>,
    /// Digest of the content that is served; empty before it was read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// When that content was read; absent before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_read_time: Option<Timestamp>,
    /// Number of packages.
    pub packages: u64,
    /// Number of bundles.
    pub bundles: u64,
    /// What is wrong with the content; absent if nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub defects: Option<CatalogDefects>,
}

/// What is wrong with the content of a catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CatalogDefects {
    /// Number of errors: what they concern cannot be installed.
    // +required
    pub errors: usize,
    /// Number of warnings.
    // +required
    pub warnings: usize,
    /// The first of them; at most 10.
    // +listType=atomic
    pub first: Vec<CatalogDefect>,
}

/// Something that is wrong with a file of a catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CatalogDefect {
    /// The file, relative to the catalog.
    // +required
    pub file: String,
    /// The line, from 1; 0 for the whole file.
    // +required
    pub line: u32,
    /// The package that it concerns; empty if it is not known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub package: String,
    /// What is wrong.
    // +required
    pub message: String,
}
