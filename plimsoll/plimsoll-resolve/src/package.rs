//! Packages, as far as the resolver has to know them: channels, their update graphs, bundles.

use serde::{Deserialize, Serialize};

use crate::bundle::Bundle;

/// A package of a catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Package {
    /// Its name, unique in its catalog.
    pub name: String,
    /// The channel that is meant when none is named; none when the catalog does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_channel: Option<String>,
    /// The message of its deprecation (`olm.deprecations`); none when it is not deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<String>,
    /// Its channels.
    pub channels: Vec<Channel>,
    /// All of its bundles that can be read well enough to have a name and a version.
    pub bundles: Vec<Bundle>,
}

/// A channel of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Channel {
    /// Its name, unique in its package.
    pub name: String,
    /// The message of its deprecation (`olm.deprecations`); none when it is not deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<String>,
    /// Its entries, in any order.
    pub entries: Vec<ChannelEntry>,
}

/// A bundle's place in a channel: what it updates.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChannelEntry {
    /// The bundle's name. An entry without a bundle stays part of the graph.
    pub name: String,
    /// The bundle that it follows, by name; it need not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// Bundles that are not to be chosen any more, by name, and from which it can be reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skips: Vec<String>,
    /// Versions from which it can be reached, a range of [`crate::range::blang`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_range: Option<String>,
}
